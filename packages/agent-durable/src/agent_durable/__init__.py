"""Runs that outlive the machine they run on.

The application's store is the truth: every message, intent and result is stored before a run continues. So a
durable engine need only record how far a run has come, and make sure that some worker finishes it.

::

    jobs         what is to be run, who is able to, and what became of it
    engine       what a durable engine must offer
    dbos_engine  DBOS as that engine
    dbos_tables  what is read from its tables at once, and our tables next to them
    database     how its database is opened and waited for
    run          a run as a workflow of steps
    stop         the end of a run that lost too many workers
    workers      the list of workers
    worker       a process that takes runs from the queue
    service      submitting, watching and cancelling runs
    metrics      what is counted for OpenTelemetry
"""

from agent_durable.engine import DurableEngine
from agent_durable.jobs import Bounds, Job, JobInfo, Outcome, Queue, QueueFull
from agent_durable.service import DurableRuns, open_engine
from agent_durable.stop import WorkersLost
from agent_durable.worker import Worker

__all__ = [
    "Bounds",
    "DurableEngine",
    "DurableRuns",
    "Job",
    "JobInfo",
    "Outcome",
    "Queue",
    "QueueFull",
    "Worker",
    "WorkersLost",
    "open_engine",
]
