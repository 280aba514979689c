// Calls of functions that the processes of another group serve: start worker.ts first,
// or later. A call waits for a worker.
import { type Context, Resonate } from "@resonatehq/sdk";

const resonate = new Resonate({ group: "rpc" });
const workers = resonate.options({ target: "workers" });

// A call from outside of a workflow.
console.log("1 + 2 =", await resonate.rpc("rpc-add", "add", 1, 2, workers));

// A workflow here that calls a function there, and waits for it without a process.
const triple = resonate.register("triple", function* (ctx: Context, n: number): Generator<any, number, any> {
  const twice = yield* ctx.rpc<number>("add", n, n, ctx.options({ target: "workers" }));
  return yield* ctx.rpc<number>("add", twice, n, ctx.options({ target: "workers" }));
});
console.log("3 * 7 =", await triple.run("rpc-triple", 7));

// A function that calls itself, on any worker.
console.log("fib(8) =", await resonate.rpc("rpc-fib", "fib", 8, workers));

await resonate.stop();

// Output:
// 1 + 2 = 3
// 3 * 7 = 21
// fib(8) = 21
