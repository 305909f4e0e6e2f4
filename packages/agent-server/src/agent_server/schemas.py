"""What requests and answers look like; from here FastAPI makes the OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

LONGEST_TEXT = 10_000_000


class Input(BaseModel):
    """What a client sends: a field that nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid")


# Sessions


class NewSession(Input):
    """A session to make."""

    agent_id: str | None = Field(default=None, description="The agent; the default one without it.")
    title: str | None = Field(default=None, max_length=500)
    model: str | None = Field(default=None, description="Another model than the agent's, as in a change.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="What plugins and tools find in it.")


class SessionChange(Input):
    """What to change of a session; what is not named stays."""

    title: str | None = Field(default=None, max_length=500)
    agent_id: str | None = Field(default=None, description="The agent that answers from now on.")
    model: str | None = Field(
        default=None,
        description="The model that answers: a declared one or PROVIDER:MODEL; empty for the agent's own.",
    )
    folder: str | None = Field(default=None, max_length=200, description="Its folder; empty for none.")
    tags: list[str] | None = Field(default=None, max_length=50, description="All its tags.")
    archived: bool | None = Field(default=None, description="Whether it is in the archive.")
    pinned: bool | None = Field(default=None, description="Whether it is pinned.")


class Labels(BaseModel):
    """How a session is put in order."""

    folder: str | None
    tags: list[str]
    archived: bool
    pinned: bool


class LabelCount(BaseModel):
    """A folder or a tag, and how many sessions have it."""

    name: str
    sessions: int


class LabelsInUse(BaseModel):
    """The folders and tags that there are."""

    folders: list[LabelCount]
    tags: list[LabelCount]
    archived: int = Field(description="How many sessions are in the archive.")


class SessionInfo(BaseModel):
    """What a list shows of a session."""

    id: str
    title: str
    agent_id: str | None
    created: float = Field(description="Seconds since 1970.")
    updated: float
    messages: int = Field(description="How many there are.")
    revision: int = Field(description="Rises with every change of its messages.")
    parent_id: str | None = Field(description="The session that it was forked from.")
    match: str | None = Field(default=None, description="In a search: the text that was found.")
    forked_at: int | None = Field(
        default=None, description="In a list of branches: how many messages are those of its parent."
    )
    extra: dict[str, Any] = Field(default_factory=dict, description="What plugins add, by plugin.")
    labels: Labels | None = Field(default=None, description="In a list: folder, tags, archive and pin.")


class SessionPage(BaseModel):
    """Some sessions, the last changed first."""

    items: list[SessionInfo]
    next_cursor: str | None = Field(description="Ask with it for the next ones; null at the end.")


class PlanItem(BaseModel):
    """One thing that an agent has planned to do."""

    text: str
    state: str = Field(description="`pending`, `in_progress`, `done` or `dropped`.")


class UnfinishedCall(BaseModel):
    """A call of a tool without a result."""

    call_id: str
    name: str
    arguments: Any = Field(description="As the model wrote them.")
    begun: bool = Field(description="Whether it may have run, in part or completely.")


class UnfinishedAnswer(BaseModel):
    """An answer that a crash has cut short. A run with nothing to say answers again."""

    text: str = Field(description="The words that were shown; the session's messages do not have them.")
    calls: list[UnfinishedCall]


class SessionState(BaseModel):
    """What is going on in a session."""

    info: SessionInfo
    holder: dict[str, Any] | None = Field(description="The process that may write it now.")
    running: Literal["here", "elsewhere"] | None
    queued: list[Waiting]
    approvals: list[Approval] = Field(description="The decisions that its run waits for.")
    plan: list[PlanItem] = Field(description="What its agent has written down to do.")
    unfinished: UnfinishedAnswer | None = Field(
        description="The last answer, if a crash has cut it short and nobody continues it."
    )
    last_event: int


class Message(BaseModel):
    """A message of a session."""

    index: int
    role: str
    content: Any
    metadata: dict[str, Any] = Field(default_factory=dict)
    multipartContent: list[dict[str, Any]] | None = None  # noqa: N815 - as messages are written everywhere
    tool_result: Any = None


class MessagePage(BaseModel):
    """Some messages, in their order."""

    items: list[Message]
    before: int | None = Field(description="Ask with it for those before; null if these are the first.")


class Fork(Input):
    """Where a session branches off."""

    upto_index: int = Field(description="The last message of the branch; may count from the end, as in -1.")
    agent_id: str | None = Field(default=None, description="Another agent for the branch.")


class Edit(Input):
    """Another version of a message."""

    content: str = Field(max_length=LONGEST_TEXT)


class Usage(BaseModel):
    """What models used in a session."""

    models: list[dict[str, Any]] = Field(description="Tokens and cost by model; the last asked comes last.")
    total: dict[str, Any]


class NextRequest(BaseModel):
    """What a request of a session sends; tokens are estimates."""

    agent: str
    model: str
    context_window: int | None
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]


class SentRequest(NextRequest):
    """What was sent for an answer, rebuilt from what is stored."""

    rebuilt: Literal[True] = Field(description="Instructions and tools are those that the agent has now.")
    at: float | None = Field(description="When it was sent, if the log still says so.")
    usage: dict[str, Any] | None = Field(description="What the provider has counted, if the log says so.")


class EditPlan(BaseModel):
    """What a branch would keep that begins with another version of a message."""

    kept_messages: int = Field(description="Those before it: they are sent as they were.")
    kept_tokens: int = Field(description="An estimate, with the agent's instructions.")
    other_messages: int = Field(description="Those behind it: they stay in this session.")
    rebuilt_items: int = Field(description="Items of the provider's own history that would be made again.")


# Runs


class PastRun(BaseModel):
    """A run of a session, as the log has it."""

    run_id: str
    agent_id: str
    model: str
    at: float | None = Field(description="When it began, in seconds since 1970.")
    seq: int = Field(description="The number of the event with which it began.")
    reason: str | None = Field(description="Why it ended; null while it runs, or if that is not known.")


class PastRuns(BaseModel):
    """Runs of a session, the latest first."""

    items: list[PastRun]
    before: int | None = Field(description="Asks for those before them; null if these are all.")


class TracePart(BaseModel):
    """Something in a run that took a while."""

    kind: Literal["run", "step", "model", "tool", "retry", "fallback", "handoff", "wait"]
    name: str = Field(description="The agent, the number of the step, the model or the tool.")
    depth: int = Field(description="How far it is indented: 0 is the run.")
    begin: float
    end: float | None
    note: str = Field(description="Tokens, costs, failures.")
    first: float | None = Field(description="When the first token of an answer came.")


class Trace(BaseModel):
    """What a run did when."""

    run_id: str
    agent: str
    model: str
    parts: list[TracePart]


class Limits(Input):
    """What a run may take."""

    timeout: float | None = Field(default=None, gt=0, description="Seconds.")
    token_budget: int | None = Field(default=None, gt=0)
    cost_budget: float | None = Field(default=None, gt=0)


class RunRequest(Input):
    """Something to say in a session, and how to answer it."""

    text: str = Field(
        default="",
        max_length=LONGEST_TEXT,
        description="What the user says. Without it, the session continues with the messages that wait.",
    )
    attachments: list[dict[str, Any]] = Field(default_factory=list, description="Content parts.")
    overrides: dict[str, Any] = Field(default_factory=dict, description="Settings for this run.")
    limits: Limits | None = None
    output_schema: dict[str, Any] | None = Field(
        default=None, description="A JSON Schema that the answer must fit; `output` of the result has it."
    )
    take_over: bool = Field(default=False, description="Take the session from another process.")
    attached: bool = Field(default=False, description="Whether the run ends with this connection.")


class RunStarted(BaseModel):
    """A run that has begun."""

    session_id: str
    after: str = Field(description="The place among the session's events before this run.")
    events: str = Field(description="Where to follow it.")


class RunResult(BaseModel):
    """What a run came to."""

    session_id: str
    text: str
    reason: dict[str, Any]
    usage: dict[str, Any]
    approvals: list[str] = Field(description="The approvals that it waits for.")
    messages: list[dict[str, Any]]
    output: Any = Field(default=None, description="The answer as a value, if a schema was given.")


class Stopped(BaseModel):
    """Whether there was something to stop."""

    stopped: bool


class NewInput(Input):
    """A message for a run that goes on, or for the next."""

    text: str = Field(default="", max_length=LONGEST_TEXT)
    mode: Literal["steer", "queue", "interrupt"] = Field(
        default="steer", description="After the current step, after the run, or now."
    )
    attachments: list[dict[str, Any]] = Field(default_factory=list)


class Waiting(BaseModel):
    """A message that waits to be delivered."""

    seq: int
    session_id: str
    message: dict[str, Any]
    mode: Literal["steer", "queue", "interrupt"]
    created: float


# Decisions


class Approval(BaseModel):
    """A decision that a run waits for."""

    id: str
    session_id: str
    suspension: dict[str, Any] = Field(description="What is asked, with the call and perhaps a schema.")
    created: float
    decision: dict[str, Any] | None
    used: bool


class GrantWith(Input):
    """What is granted together with a decision."""

    scope: Literal["session", "project", "always"]
    pattern: str | None = None


class Decision(Input):
    """What was decided."""

    approved: bool | None = None
    value: Any = Field(default=None, description="The answer, where one was asked for.")
    reason: str | None = Field(default=None, description="What the model hears if it was refused.")
    grant: GrantWith | None = Field(default=None, description="Count it for later calls as well.")
    go_on: bool = Field(default=True, description="Start a run that continues with it.")


class NewGrant(Input):
    """Calls that may run, or not, from now on."""

    pattern: str = Field(min_length=1, max_length=10_000)
    scope: Literal["session", "project", "always"]
    session_id: str | None = None
    project: str | None = None
    effect: Literal["allow", "deny"] = "allow"


class Grant(BaseModel):
    """A permission that was given, or refused, for longer than one call."""

    id: str
    pattern: str
    effect: Literal["allow", "deny"]
    scope: Literal["session", "project", "always"]
    key: str
    created: float
    note: str


# Plugins


class ActionCall(Input):
    """The inputs of an action."""

    params: dict[str, Any] = Field(default_factory=dict)
    confirmed: bool = Field(
        default=False,
        strict=True,
        description="Whether somebody said yes to the question that it asks first.",
    )


class ActionResult(BaseModel):
    """What an action came to; its `display` is what to show."""

    result: dict[str, Any]


class CompletionRequest(Input):
    """The text before the cursor."""

    text: str = Field(max_length=100_000)
    completion: dict[str, Any] | None = Field(
        default=None, description="A suggestion that was accepted: its text is returned in place of a list."
    )


class Completions(BaseModel):
    """Suggestions, or the text of an accepted one."""

    items: list[dict[str, Any]] = Field(default_factory=list)
    text: str | None = None


class Items(BaseModel):
    """A list of things that plugins describe in their own words."""

    items: list[dict[str, Any]]


# Assets


class Asset(BaseModel):
    """A file of a session."""

    id: str
    name: str
    media_type: str
    size: int
    sha256: str
    session_id: str
    created: float


class AssetList(BaseModel):
    """The files of a session."""

    items: list[Asset]


# Administration


class KeyChange(Input):
    """A key of a provider; it can be written, never read."""

    key: str = Field(min_length=1, max_length=10_000)
    test: bool = Field(default=True, description="Ask the provider whether it takes the key.")


class SettingChange(Input):
    """The new value of a setting."""

    value: Any


class AgentDeclaration(BaseModel):
    """What the settings say of an agent; empty if they say nothing of it."""

    id: str
    declared: dict[str, Any] = Field(description="Its fields as they hold; see /v1/settings/schema/agent.")
    own: dict[str, Any] | None = Field(description="Those that can be changed here; null if there are none.")
    origins: dict[str, str] = Field(description="Where each field stands.")


class AgentChange(Input):
    """An agent as it should be declared from now on."""

    declared: dict[str, Any] = Field(description="All fields that are set here; the others have defaults.")


class AgentChanged(BaseModel):
    """What was changed, and when it counts."""

    id: str
    before: dict[str, Any] | None = Field(description="What was declared here before, to undo it.")
    origin: str = Field(description="Where it stands, or stood.")
    applies: Literal["now", "restart"]


class ModelTest(Input):
    """A model to test."""

    model: str = Field(min_length=1, max_length=500, description="A declared one, or PROVIDER:MODEL.")


class UsageRow(BaseModel):
    """What a model used for an agent, in the sessions that were last used on a day."""

    day: str = Field(description="As 2026-11-18, in UTC.")
    agent: str | None
    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    cost: float


class UsageRows(BaseModel):
    """Usage of many sessions."""

    items: list[UsageRow]
    complete: bool = Field(description="False if there are more sessions than were looked at.")


class Connection(BaseModel):
    """Something that can answer."""

    name: str
    label: str
    found: str | None = Field(description="What was found here: a key, or a server that answers.")
    needs_key: bool
    needs_address: bool


class Connections(BaseModel):
    """What can answer, the found ones first."""

    needed: bool = Field(description="Whether nobody has chosen a model yet.")
    items: list[Connection]


class Choice(Input):
    """What should answer from now on."""

    name: str | None = Field(default=None, max_length=200, description="A connection of the list.")
    url: str | None = Field(default=None, max_length=2000, description="The address of a server of your own.")
    key: str | None = Field(
        default=None, max_length=10_000, description="Without it, the one that was found."
    )
    model: str | None = Field(default=None, max_length=500, description="Without it, the recommended one.")
    check: bool = Field(
        default=True,
        description="Try it before anything is saved: it lists its models, and the embedded one says a word.",
    )


class Version(BaseModel):
    """What this server is."""

    name: str
    version: str
    api: str


class ProblemDetails(BaseModel):
    """What went wrong, as RFC 9457 has it."""

    type: str
    title: str
    status: int
    detail: str | None = None
    request_id: str
    errors: list[dict[str, Any]] = Field(default_factory=list)


# People


class WhoAmI(BaseModel):
    """Who makes a request."""

    id: str
    tenant: str | None = Field(description="Whose sessions there are; null for all.")
    level: Literal["read", "write", "manage", "operate"]
    used: dict[str, float] | None = Field(default=None, description="Runs, tokens and cost of today.")
    allowed: dict[str, float | None] | None = Field(default=None, description="null is for no limit.")


Role = Literal["viewer", "editor", "owner"]
Seconds = Annotated[
    float | None, Field(gt=0, le=10 * 366 * 86400, description="For how long; null for ever.")
]


class NewPerson(Input):
    """Somebody to add."""

    id: str = Field(min_length=1, max_length=500)
    tenant: str | None = Field(default=None, max_length=200, description="For the operator: whose.")
    role: Role = "editor"
    name: str = Field(default="", max_length=200)
    email: str = Field(default="", max_length=320)


class PersonChange(Input):
    """What to change of somebody."""

    role: Role | None = None
    disabled: bool | None = None


class Person(BaseModel):
    """Somebody who may use the server."""

    id: str
    tenant: str
    role: Role
    name: str
    email: str
    created: float
    disabled: bool


class NewApiKey(Input):
    """A key to make."""

    name: str = Field(default="", max_length=200)
    scope: Literal["read", "write", "manage"] = "write"
    seconds: Seconds = 90 * 86400


class ApiKey(BaseModel):
    """A key, with its secret when it is made."""

    id: str
    person: str
    name: str
    scope: str
    created: float
    expires: float | None
    revoked: float | None
    secret: str | None = None


class Invitation(Input):
    """Somebody to invite to a session."""

    email: str = Field(min_length=3, max_length=320)
    role: Literal["viewer", "editor"] = "viewer"
    seconds: Seconds = None


class NewLink(Input):
    """A link to make, by which a session can be read."""

    seconds: Seconds = 7 * 86400


class Share(BaseModel):
    """How a session is shared."""

    id: str
    kind: Literal["link", "invitation"]
    session: str
    tenant: str
    email: str | None
    role: str
    created: float
    expires: float | None
    made_by: str
    revoked: float | None
    secret: str | None = None
