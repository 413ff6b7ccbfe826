"""Celery: how jobs run. The jobs and their schedule are in state_admin/tasks."""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
import time
import warnings
from typing import Any

import django
import structlog
from celery import Celery, signals
from celery.exceptions import SecurityWarning

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

from django.conf import settings
from django.db import connections

from project import audit_stream, broker, heartbeat, log_context, migrations, tracing
from project.env import BadSetting
from project.failures import describe_error
from project.postgres.gate import refuse_unsafe_server
from state_admin import __version__

log = structlog.get_logger(__name__)

TASKS = "state_admin.tasks"
# The header of a message with the ids of the call that queued the job.
_CONTEXT = "commonhold"

app = Celery("commonhold")
app.conf.update(
    broker_url=broker.url(),
    broker_transport_options=broker.transport_options(),
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    task_default_queue="commonhold",
    # A job is acknowledged when it has returned, so that the jobs of a killed worker are repeated.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_ignore_result=True,
    task_publish_retry=False,
    task_serializer="json",
    result_serializer="json",
    accept_content=["json"],
    enable_utc=True,
    timezone="UTC",
    worker_pool="threads",
    worker_concurrency=settings.WORKER_THREADS,
    worker_prefetch_multiplier=2,
    # After a reconnect Celery would take fewer messages and raise the number with every finished
    # job, from the threads of the jobs. py-amqp's connection belongs to one thread: two of them wait
    # for each other's frames, and the worker runs no further job.
    worker_enable_prefetch_count_reduction=False,
    # Control and events would create a queue per host (in PostgreSQL: tables) and never delete it.
    worker_enable_remote_control=False,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    beat_scheduler="project.beat:Scheduler",
    beat_max_loop_interval=60,
    beat_sync_every=1,
)


@signals.setup_logging.connect
def _disable_celery_logging(**_: Any) -> None:
    """A receiver of this signal keeps Celery from configuring the logging."""


@signals.import_modules.connect
def import_tasks(**_: Any) -> None:
    """Import every module of state_admin/tasks, so that a new file need not be listed."""
    package = importlib.import_module(TASKS)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{TASKS}.{module.name}")


@signals.before_task_publish.connect
def _send_context(headers: dict[str, Any], **_: Any) -> None:
    """Add the ids of the call that queues a job to its message."""
    headers[_CONTEXT] = log_context.shared()
    tracing.inject(headers)


@signals.task_prerun.connect
def _begin_job(task_id: str, task: Any, **_: Any) -> None:
    """Begin the log context and the span of a job, which continues the trace of the call that
    queued it."""
    attributes = {
        "messaging.system": "celery",
        "messaging.operation.type": "process",
        "messaging.operation.name": "process",
        "messaging.destination.name": app.conf.task_default_queue,
        "messaging.message.id": task_id,
    }
    parent = {name: task.request.get(name) or "" for name in ("traceparent", "tracestate")}
    task.request.span = tracing.span(
        f"process {task.name}", attributes, kind="consumer", parent=parent
    )
    task.request.entered = task.request.span.__enter__()
    log_context.begin(job_id=task_id, task=task.name, **(task.request.get(_CONTEXT) or {}))


@signals.task_postrun.connect
def _end_job(task: Any, state: str, retval: Any, **_: Any) -> None:
    if state == "FAILURE":
        task.request.entered.fail(type(retval).__qualname__)
    task.request.span.__exit__(None, None, None)


@signals.worker_init.connect
@signals.beat_init.connect
def prepare(**_: Any) -> None:
    """Called at startup: refuse a database server that is not safe to use, and create the
    queues."""
    try:
        refuse_unsafe_server()
        broker.prepare()
    except BadSetting as error:
        sys.exit(str(error))
    except Exception as error:
        log.error("broker.unreachable", error=describe_error(error))
        sys.exit(1)


def _begin(**_: Any) -> None:
    """Called after `prepare`: wait until manage.py setup has applied the migrations. In Kubernetes,
    the processes start at the same time as its Job."""
    said = False
    while True:
        due = migrations.are_due()
        connections.close_all()
        if not due:
            break
        if not said:
            log.warning("database.migrations_due", hint="waiting for manage.py setup")
            said = True
        heartbeat.report()
        time.sleep(1)
    log.info("process.started", version=__version__)


def run(role: str, *, needs_tables: bool = True) -> None:
    """Run as worker or beat until SIGTERM. Not by Celery's own command line, whose import takes 0.3
    s. Raises BadSetting if HEARTBEAT_FILE cannot be written, or if the worker cannot use a file of
    AUDIT_STREAM_TLS_CA or AUDIT_STREAM_TLS_CERT."""
    django.setup()
    heartbeat.check()
    if role == "worker":
        audit_stream.check_tls_files(settings.AUDIT_STREAM)
    tracing.start()
    # Celery would run Django's checks, which import every page: 20 MB, and a third of the time of the start.
    os.environ["CELERY_SKIP_CHECKS"] = "1"
    # Celery warns about root, and about a group without a name, as OpenShift has them, because of
    # pickle; only JSON is accepted here.
    warnings.filterwarnings("ignore", message="You're running the worker with superuser")
    warnings.filterwarnings("ignore", category=SecurityWarning)
    if needs_tables:
        signals.worker_init.connect(_begin)
        signals.beat_init.connect(_begin)
    if role == "beat":
        # The worker does not need it.
        from project.beat import Beat, Scheduler

        sweeps = importlib.import_module(f"{TASKS}.sweeps")
        app.conf.beat_schedule = sweeps.BEAT_SCHEDULE
        Scheduler.conditions = sweeps.CONDITIONS
        Beat(app=app, quiet=True).run()
        return
    heartbeat.report_from_worker()
    worker = app.Worker(
        quiet=True, without_gossip=True, without_mingle=True, without_heartbeat=True
    )
    worker.start()
    sys.exit(worker.exitcode)
