"""Other protocols for the same services: AG-UI, the AI SDK, the Agent Protocol."""
