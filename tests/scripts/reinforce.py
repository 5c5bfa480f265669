"""Policy gradient on a bandit: rollouts under no_grad, then an update."""

import os
import random

import torch
from torch.distributions import Categorical

device = torch.device(os.environ.get("DEVICE", "cpu"))

torch.manual_seed(23)
random.seed(23)
policy = torch.nn.Sequential(torch.nn.Linear(3, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4)).to(device)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
for episode in range(10):
    observations, actions, rewards = [], [], []
    for _ in range(20):
        observation = torch.tensor([random.gauss(0, 1) for _ in range(3)], device=device)
        with torch.no_grad():
            action = Categorical(logits=policy(observation)).sample()
        observations.append(observation)
        actions.append(action)
        rewards.append(1.0 if action.item() == int(observation[0] > 0) else random.uniform(-0.1, 0.1))
    log_p = Categorical(logits=policy(torch.stack(observations))).log_prob(torch.stack(actions))
    loss = -(log_p * torch.tensor(rewards, device=device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(episode, sum(rewards), loss.item())
