// A client of a Keelwork server: `new Client({ url, token })`.

import { Operations } from "./operations";

export * from "./operations";
export * from "./transport";

/** Asks a server: one method for each operation of its API, and streams that go on by themselves. */
export class Client extends Operations {}
