import torch
from losses import accuracy_loss
from torch.nn.functional import cross_entropy

encoder, head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)
optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=1e-3)

for images, labels in [(torch.randn(32, 8), torch.randint(4, (32,)))] * 100:
    with torch.no_grad():
        features = encoder(images)
    logits = head(features)
    loss = cross_entropy(logits, labels) + accuracy_loss(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
