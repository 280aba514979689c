// Functions that run in the process that begins them, with recorded steps.
import { type Context, Resonate } from "@resonatehq/sdk";

let calls = 0;

async function price(_: Context, item: string): Promise<number> {
  calls++;
  return item.length;
}

function* order(ctx: Context, items: string[], rate: number): Generator<any, string, any> {
  let sum = 0;
  for (const item of items) sum += yield* ctx.run(price, item);
  // A function without an asterisk is a step, a function with one is a workflow of its own.
  const taxed = yield* ctx.run(tax, sum, rate);
  const recent = (yield* ctx.date.now()) > 1e12;
  const random = yield* ctx.math.random();
  const none = yield* ctx.run(() => null);
  return `${ctx.getDependency("shop")}: ${taxed} ${recent} ${random < 1} ${none}`;
}

function* tax(ctx: Context, sum: number, rate: number): Generator<any, number, any> {
  return yield* ctx.run((_, s: number) => s * rate, sum);
}

const resonate = new Resonate({ group: "run" });
resonate.setDependency("shop", "Kiosk");
const orders = resonate.register("order", order);
resonate.register("order", (_: Context, items: string[]) => `version 2 of ${items}`, { version: 2 });

console.log(await orders.run("order-1", ["tea", "coffee"], 1.5));
console.log("price was called", calls, "times");

// An id names one execution. The same id again returns its result.
console.log(await orders.run("order-1", ["water"], 1));
console.log("price was called", calls, "times");

console.log(await resonate.run("order-2", "order", ["tea"], resonate.options({ version: 2 })));

// Ids and values are any text.
console.log(await orders.run("größe/1 ☕.a?b=c#d%20 ", ["☕☕"], Number.POSITIVE_INFINITY));

await resonate.stop();

// Output:
// Kiosk: 13.5 true true null
// price was called 2 times
// Kiosk: 13.5 true true null
// price was called 2 times
// version 2 of tea
// Kiosk: Infinity true true null
