"""Other people's protocols over the same services: AG-UI, the AI SDK, the Agent Protocol."""
