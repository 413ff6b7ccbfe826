"""LangGraph's SDK on Commonhold: a memory, a thread, its history. No model is called."""

from __future__ import annotations

import os
import sys

import httpx
from langgraph_sdk import get_sync_client

base = os.environ["COMMONHOLD_URL"] + "/api/v1"
token = os.environ["COMMONHOLD_TOKEN"]
headers = {"Authorization": f"Bearer {token}"}
httpx.put(f"{base}/state-keys/itinerary", json={"scope": "thread"}, headers=headers)

with get_sync_client(url=f"{base}/agent-protocol", api_key=token) as client:
    client.store.put_item(["travellers", "ann"], key="seat", value={"prefers": "window"})
    memory = client.store.search_items(["travellers"], filter={"prefers": "window"})["items"]
    sys.stdout.write(f"{memory[0]['key']}: {memory[0]['value']}\n")

    thread = client.threads.create(metadata={"topic": "Lisbon"})
    client.threads.update_state(thread["thread_id"], {"itinerary": ["fly"]})
    client.threads.update_state(thread["thread_id"], {"itinerary": ["fly", "walk"]})
    for state in client.threads.get_history(thread["thread_id"]):
        sys.stdout.write(f"{state['checkpoint']['checkpoint_id']}: {state['values']}\n")
