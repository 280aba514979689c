// A workflow that is cancelled: its caller learns it, and no later step is recorded.
import { type Context, Resonate } from "@resonatehq/sdk";

const resonate = new Resonate({ group: "cancellation", ttl: 1000 });
const show = (e: any) => `${e.name}: ${e.message}`;
const later: string[] = [];

// Cancelled while it waits.
const waiting = resonate.register("waiting", function* (ctx: Context): Generator<any, void, any> {
  yield* yield* ctx.promise();
  yield* ctx.run(() => later.push("waiting went on"));
});
const first = await waiting.beginRun("waiting");
await pending("waiting:0");
console.log((await resonate.promises.cancel("waiting")).state);
console.log(await first.result().catch(show));
await resonate.promises.resolve("waiting:0"); // resumes nothing

// Cancelled while a step runs: the result of the step is refused.
let release = () => {};
const running = resonate.register("running", function* (ctx: Context): Generator<any, void, any> {
  yield* ctx.run(() => new Promise<void>((resolve) => (release = resolve)));
  yield* ctx.run(() => later.push("running went on"));
});
const second = await running.beginRun("running");
await pending("running:0");
await resonate.promises.cancel("running");
console.log(await second.result().catch(show));
release();

// The result cannot be changed any more.
console.log((await resonate.promises.resolve("running")).state);
console.log(await running.run("running").catch(show));

// A child that its workflow cancels: the workflow goes on.
const parent = resonate.register("cancels", function* (ctx: Context): Generator<any, string, any> {
  const child = yield* ctx.beginRpc("unserved", ctx.options({ target: "unserved" }));
  yield* ctx.run(() => resonate.promises.cancel("cancels:0").then((p) => p.state));
  try {
    yield* child;
  } catch (e) {
    return "the child is cancelled";
  }
  return "unexpected";
});
console.log(await parent.run("cancels"));

await resonate.stop();
console.log("later steps:", later);

async function pending(id: string): Promise<void> {
  while ((await resonate.promises.get(id).catch(() => undefined))?.state !== "pending")
    await new Promise((resolve) => setTimeout(resolve, 20));
}

// Output:
// rejected_canceled
// Error: Promise canceled
// Error: Promise canceled
// rejected_canceled
// Error: Promise canceled
// the child is cancelled
// later steps: []
