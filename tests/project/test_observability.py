"""The rules, alerts and the dashboard of deploy/observability use metrics that exist, and each alert has
a section of docs/operations.md."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest
import yaml
from django.conf import settings

from state_admin.models.metrics_sql import METRICS
from state_admin.tasks.sweeps import SWEEPS
from tests.patience import PATIENCE

FOLDER = settings.BASE_DIR / "deploy" / "observability"
# Those that Prometheus makes of each scrape.
OF_PROMETHEUS = {"up": "", "scrape_duration_seconds": ""}
PROMTOOL = shutil.which("promtool")
RULES = [
    rule
    for group in yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
RECORDED = {rule["record"] for rule in RULES if "record" in rule}
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text())


def expressions() -> list[str]:
    targets = [target for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return [*(rule["expr"] for rule in RULES), *(target["expr"] for target in targets)]


def series(expression: str) -> list[tuple[str, str, str]]:
    """Name, label and value of each selector; label and value are empty without one."""
    found = re.findall(
        r"(?<![\w:\"])(commonhold[\w:]+|up|scrape_\w+)(?:\{(\w+)=~?\"([^\"]+)\"\})?", expression
    )
    assert found, expression
    return found


@pytest.mark.parametrize("expression", expressions())
def test_expression__of_rules_and_dashboard__names_metrics_that_exist(expression: str) -> None:
    for name, label, _ in series(expression):
        if ":" in name:
            assert name in RECORDED
        elif label != "job":
            known = {name: label for name, (_, label) in METRICS.items()} | OF_PROMETHEUS
            assert name in known
            assert label in ("", known[name])


def test_sweeps__that_alerts_name__exist() -> None:
    named = {
        sweep
        for expression in expressions()
        for name, label, value in series(expression)
        if label == "sweep"
        for sweep in value.split("|")
    }
    assert named <= {sweep.name for sweep in SWEEPS}
    # The others run only if there is work, so they may be old.
    assert named >= {sweep.name for sweep in SWEEPS if sweep.has_work is None}


def test_dashboard__every_metric_of_the_catalogue__is_shown() -> None:
    text = json.dumps(DASHBOARD)
    assert [name for name in METRICS if name not in text] == []


def test_dashboard__panels__have_a_place_of_their_own() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)


def test_alerts__each__has_a_section_with_its_severity() -> None:
    page = (settings.BASE_DIR / "docs" / "operations.md").read_text()
    section = page.partition("\n## Alerts\n")[2].partition("\n## ")[0]
    documented: dict[str, Any] = dict(re.findall(r"\n### (\w+)\n\n`(\w+)`\.", section))
    assert documented == {name: rule["labels"]["severity"] for name, rule in ALERTS.items()}
    for name, rule in ALERTS.items():
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{name.lower()}"


def test_alerts__each__fires_in_a_test() -> None:
    tests = yaml.safe_load((FOLDER / "alerts_test.yml").read_text())["tests"]
    fired = {
        case["alertname"]
        for test in tests
        for case in test["alert_rule_test"]
        if case.get("exp_alerts")
    }
    assert fired == set(ALERTS)


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
@pytest.mark.system
def test_alerts__with_promtool__pass_their_tests() -> None:
    done = subprocess.run(
        [str(PROMTOOL), "test", "rules", *sorted(path.name for path in FOLDER.glob("*_test.yml"))],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
