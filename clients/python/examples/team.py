"""Two agents share the knowledge of their team; neither overwrites the changes of the other."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

from commonhold import Commonhold, ProfileKey, StateScope


class TeamContext(ProfileKey):
    goal: str = ""
    constraints: list[str] = []


def agent(state: Commonhold, finding: str) -> None:
    def note(team: TeamContext) -> None:
        team.constraints.append(finding)

    state.edit(TeamContext, StateScope.parent_thread("trip"), note)


with Commonhold.from_env() as state:
    state.register(TeamContext)
    with ThreadPoolExecutor(4) as pool:
        findings = [f"finding {n}" for n in range(12)]
        list(pool.map(agent, [state] * 12, findings))  # raises the exception of an agent
    team = state.read(TeamContext, StateScope.parent_thread("trip"))
    sys.stdout.write(f"{len(team.constraints)} findings\n")
