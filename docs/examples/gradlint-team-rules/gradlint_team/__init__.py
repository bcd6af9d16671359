"""The rules of our team: one file a rule, named after its code; being here is being found by
gradlint.
"""
