// A workflow that sleeps. It holds no worker while it sleeps.
import { type Context, Resonate } from "@resonatehq/sdk";

const resonate = new Resonate({ group: "sleep" });
const nap = resonate.register("nap", function* (ctx: Context, ms: number): Generator<any, boolean, any> {
  const before = yield* ctx.date.now();
  yield* ctx.sleep(ms);
  yield* ctx.sleep({ until: new Date(before + 2 * ms) });
  return (yield* ctx.date.now()) - before >= 2 * ms;
});

console.log(await nap.run("nap-400", 400));
console.log(await nap.run("nap-third", 100 / 3)); // a fraction of a millisecond
console.log(await nap.run("nap-0", 0)); // a deadline that has passed

const begun = [];
for (let i = 0; i < 20; i++) begun.push(nap.run(`nap-${i}`, 100 + i));
console.log((await Promise.all(begun)).every((slept) => slept));

await resonate.stop();

// Output:
// true
// true
// true
// true
