"""Runs that outlive the machine they run on.

The application's store is the truth: every message, intent and result is there before a run goes on. So a
durable engine need only remember how far a run has come, and see to it that somebody brings it to its end.

::

    jobs         what is to be run, and what became of it
    units        a run taken one model call or tool call at a time
    performing   a run as a workflow of such steps
    engine       what is needed of a durable engine
    dbos_engine  DBOS as that engine
    dbos_tables  what is read from its tables at once
    metrics      what is counted for OpenTelemetry
    workers      who is at work, and who has died
    worker       a process that takes runs from the queue
    capability   which runs a worker can take
    service      the face for those who submit, watch and cancel runs
"""

from agent_durable.engine import DurableEngine
from agent_durable.jobs import Job, JobInfo, Outcome, Queue
from agent_durable.service import DurableRuns, end_of_log, open_engine
from agent_durable.worker import Worker

__all__ = [
    "DurableEngine",
    "DurableRuns",
    "Job",
    "JobInfo",
    "Outcome",
    "Queue",
    "Worker",
    "end_of_log",
    "open_engine",
]
