// The SDK's second engine: durable functions are async functions.
import { Constant, type Context, Never, Resonate } from "@resonatehq/sdk/async";

const resonate = new Resonate({ group: "async" });

let attempts = 0;

async function shop(ctx: Context, items: string[]): Promise<unknown[]> {
  const remote = ctx.options({ target: "workers" });
  const once = ctx.options({ target: "workers", retryPolicy: new Never() });
  // Calls begin at once and run at the same time.
  const sums = await Promise.all(items.map((item) => ctx.rpc<number>("add", item.length, 1, remote)));
  const [, , local] = await Promise.all([ctx.sleep(200), ctx.sleep(300), ctx.run(() => 5)]);
  const tried = await ctx.run(() => {
    if (++attempts < 3) throw new Error("not yet");
    return attempts;
  }, ctx.options({ retryPolicy: new Constant({ delay: 10, maxRetries: 5 }) }));
  const failed = await ctx.rpc("fail", "CardError", "refused", once).catch((e: Error) => `${e.name}: ${e.message}`);
  const detached = await ctx.detached("add", 1, 1, remote);
  return [...sums, local, tried, failed, detached.id.startsWith("shop:d")];
}

const shops = resonate.register("shop", shop);
// Here run begins a call and returns its handle.
console.log(await (await shops.run("shop", ["tea", "coffee"])).result());
console.log(await (await shops.run("shop", [])).result());

await resonate.stop();

// Output:
// [ 4, 7, 5, 3, 'CardError: refused', true ]
// [ 4, 7, 5, 3, 'CardError: refused', true ]
