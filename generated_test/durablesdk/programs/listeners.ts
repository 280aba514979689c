// A result that a process awaits which has not begun the call.
import { Resonate } from "@resonatehq/sdk";

// Two processes, as far as the server can tell: each has a connection of its own.
const begins = new Resonate({ group: "begins" });
const awaits = new Resonate({ group: "awaits" });
const third = new Resonate({ group: "awaits" });

await begins.beginRpc("listeners", "approval", "trip", begins.options({ target: "workers" }));
await begins.stop(); // it does not wait

const handles = [await awaits.get<string>("listeners"), await third.get<string>("listeners")];
const results = Promise.all(handles.map((handle) => handle.result()));
console.log("done:", await handles[0].done());

while (!(await awaits.promises.get("listeners:0").catch(() => undefined))) await new Promise((r) => setTimeout(r, 20));
await awaits.promises.resolve("listeners:0", { data: btoa('"granted"') });
// The server sends a message. Without it the SDK would ask again after a minute.
const late = new Promise((resolve) => setTimeout(resolve, 50_000, "no message").unref());
console.log(await Promise.race([results, late]));

// Later, a lookup is enough.
console.log(await (await third.get<string>("listeners")).result());

await awaits.stop();
await third.stop();

// Output:
// done: false
// [ 'trip: granted', 'trip: granted' ]
// trip: granted
