// The functions that worker.ts serves. A function with an asterisk is durable: each
// yield* is recorded, and a worker that takes the function over repeats no recorded one.
import { appendFileSync } from "node:fs";
import { type Context, Never } from "@resonatehq/sdk";

export function add(_: Context, a: number, b: number): number {
  return a + b;
}

// fail throws an error with a name and a message.
export function fail(_: Context, name: string, message: string): never {
  throw Object.assign(new Error(message), { name });
}

// fib calls itself on any worker of the group.
export function* fib(ctx: Context, n: number): Generator<any, number, any> {
  if (n < 2) return n;
  const target = ctx.options({ target: process.env.GROUP ?? "workers" });
  const a = yield* ctx.beginRpc<number>("fib", n - 1, target);
  const b = yield* ctx.beginRpc<number>("fib", n - 2, target);
  return (yield* a) + (yield* b);
}

// fanOut calls add n times at once and returns the sum of the results.
export function* fanOut(ctx: Context, n: number): Generator<any, number, any> {
  const target = ctx.options({ target: process.env.GROUP ?? "workers" });
  const calls = [];
  for (let i = 0; i < n; i++) calls.push(yield* ctx.beginRpc<number>("add", i, 1, target));
  let sum = 0;
  for (const call of calls) sum += yield* call;
  return sum;
}

// steps runs n steps, one after the other, and returns their number.
export function* steps(ctx: Context, n: number): Generator<any, number, any> {
  let done = 0;
  for (let i = 1; i <= n; i++) done += yield* ctx.run(effect, i);
  return done;
}

// effect writes its number to the file EFFECTS, which is its side effect. It then takes
// PAUSE milliseconds, and in a process with HANG equal to the number it never returns.
async function effect(_: Context, i: number): Promise<number> {
  appendFileSync(process.env.EFFECTS ?? "effects.txt", `step ${i}\n`);
  const pause = process.env.HANG === String(i) ? 2 ** 31 - 1 : Number(process.env.PAUSE ?? 0);
  await new Promise((resolve) => setTimeout(resolve, pause));
  return 1;
}

// approval waits until a program settles the promise that it creates. The id of that
// promise is the id of the call and ":0".
export function* approval(ctx: Context, subject: string): Generator<any, string, any> {
  const answer = yield* ctx.promise<string>();
  const text = yield* answer;
  appendFileSync(process.env.EFFECTS ?? "effects.txt", `${subject}: ${text}\n`);
  return `${subject}: ${text}`;
}

// order is one workflow in two languages: payment is a function in Go, see ../payment,
// which calls receipt.
export function* order(ctx: Context, item: string): Generator<any, string, any> {
  const payments = ctx.options({ target: "payments", retryPolicy: new Never() });
  yield* ctx.run(note, `reserve ${item}`);
  const paid = yield* ctx.rpc<{ amount: number; receipt: string }>("payment", { item, amount: 3 }, payments);
  let refused = "";
  try {
    yield* ctx.rpc("payment", { item, amount: -1 }, payments);
  } catch (e: any) {
    refused = `${e.name}: ${e.message}`;
  }
  return `paid ${paid.amount}, receipt ${paid.receipt}, refused with ${refused}`;
}

export function* receipt(ctx: Context, item: string): Generator<any, string, any> {
  if (item === "") throw new RangeError("nothing was bought");
  yield* ctx.run(note, `receipt for ${item}`);
  return `${item}/1`;
}

function note(_: Context, line: string) {
  appendFileSync(process.env.EFFECTS ?? "effects.txt", `${line}\n`);
}
