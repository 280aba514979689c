// A detached call: the workflow ends without it, and it ends without the workflow.
import { type Context, Resonate } from "@resonatehq/sdk";

const resonate = new Resonate({ group: "detached" });

resonate.register("outlives", function* (ctx: Context, n: number): Generator<any, number, any> {
  return (yield* yield* ctx.promise<number>()) ?? n;
});
const parent = resonate.register("starts", function* (ctx: Context, n: number): Generator<any, string, any> {
  const future = yield* ctx.detached("outlives", n, ctx.options({ target: "detached" }));
  return future.id;
});

const id = await parent.run("detached", 42, resonate.options({ timeout: 5000 }));
const begun = await resonate.promises.get(id);
console.log("the parent has ended, its child is", begun.state);
console.log(id.startsWith("detached:d"), begun.timeoutAt - begun.createdAt > 5000, begun.tags["resonate:origin"]);

let answer;
while (!(answer = await resonate.promises.get(`${id}.0`).catch(() => undefined))) await new Promise((r) => setTimeout(r, 20));
await resonate.promises.resolve(answer.id);
console.log("the child returns", await (await resonate.get(id)).result());

await resonate.stop();

// Output:
// the parent has ended, its child is pending
// true true detached
// the child returns 42
