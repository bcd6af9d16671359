"""The families of `torch.distributions`: their modules, arguments, and which have no derivative."""

from __future__ import annotations

# The arguments of the constructors, where they are not `loc` and `scale` (torch 2.13).
ARGUMENTS = {
    "Bernoulli": "probs logits",
    "Beta": "concentration1 concentration0",
    "Binomial": "total_count probs logits",
    "Categorical": "probs logits",
    "Chi2": "df",
    "ContinuousBernoulli": "probs logits lims",
    "Dirichlet": "concentration",
    "Exponential": "rate",
    "FisherSnedecor": "df1 df2",
    "Gamma": "concentration rate",
    "Geometric": "probs logits",
    "HalfCauchy": "scale",
    "HalfNormal": "scale",
    "Independent": "base_dist reinterpreted_batch_ndims",
    "InverseGamma": "concentration rate",
    "Kumaraswamy": "concentration1 concentration0",
    "LKJCholesky": "dim concentration",
    "LowRankMultivariateNormal": "loc cov_factor cov_diag",
    "GeneralizedPareto": "loc scale concentration",
    "MixtureSameFamily": "mixture_distribution component_distribution",
    "Multinomial": "total_count probs logits",
    "MultivariateNormal": "loc covariance_matrix precision_matrix scale_tril",
    "NegativeBinomial": "total_count probs logits",
    "OneHotCategorical": "probs logits",
    "OneHotCategoricalStraightThrough": "probs logits",
    "Pareto": "scale alpha",
    "RelaxedBernoulli": "temperature probs logits",
    "RelaxedOneHotCategorical": "temperature probs logits",
    "StudentT": "df loc scale",
    "Poisson": "rate",
    "Uniform": "low high",
    "VonMises": "loc concentration",
    "Weibull": "scale concentration",
    "Wishart": "df covariance_matrix precision_matrix scale_tril",
    "TransformedDistribution": "base_dist transforms",
}
# Without a reparametrised sample: `rsample` raises NotImplementedError.
SAMPLED = frozenset(
    (
        "Bernoulli",
        "Binomial",
        "Categorical",
        "Geometric",
        "LKJCholesky",
        "MixtureSameFamily",
        "Multinomial",
        "NegativeBinomial",
        "OneHotCategorical",
        "Poisson",
        "VonMises",
    )
)
DISCRETE_MODE = frozenset(
    (
        "Bernoulli",
        "Binomial",
        "Categorical",
        "Geometric",
        "Multinomial",
        "OneHotCategorical",
        "OneHotCategoricalStraightThrough",
        "Poisson",
    )
)
SMOOTH = (
    "log_prob",
    "rsample",
    "entropy",
    "cdf",
    "icdf",
    "perplexity",
    "rsample_with_log_prob",
    "log_abs_det_jacobian",
)
VALUES = (
    "mean",
    "variance",
    "stddev",
    "probs",
    "logits",
    "loc",
    "scale",
    "rate",
    "concentration",
    "covariance_matrix",
    "precision_matrix",
    "scale_tril",
    "concentration0",
    "concentration1",
    "low",
    "high",
    "df",
    "temperature",
    "total_count",
)
# Of a location and a scale, what the location alone, or all but the location, says (torch 2.13).
OF_LOCATION = {"mean": ("Normal", "Laplace", "MultivariateNormal", "LowRankMultivariateNormal")}
_SCALED = (
    "Normal",
    "Laplace",
    "Gumbel",
    "Cauchy",
    "StudentT",
    "MultivariateNormal",
    "LowRankMultivariateNormal",
)
OF_SCALE = {"entropy": _SCALED, "variance": _SCALED, "stddev": _SCALED}
SHAPES = ("batch_shape", "event_shape", "support", "arg_constraints", "param_shape")
OVER_CATEGORIES = ("Categorical", "OneHotCategorical", "OneHotCategoricalStraightThrough")
