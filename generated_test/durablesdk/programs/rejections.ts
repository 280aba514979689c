// Errors: they arrive with name and message, and a policy says whether to retry.
import { Constant, type Context, Never, Resonate } from "@resonatehq/sdk";

const resonate = new Resonate({ group: "rejections" });
const never = new Never();

const show = (e: any) => (e instanceof Error ? `${e.name}: ${e.message}` : `${e}`);

function broken(_: Context): never {
  throw new TypeError("no such item");
}

// Errors of steps and of calls are caught like other errors.
const careful = resonate.register("careful", function* (ctx: Context): Generator<any, string[], any> {
  const caught = [];
  try {
    yield* ctx.run(broken, ctx.options({ retryPolicy: never }));
  } catch (e) {
    caught.push(show(e));
  }
  try {
    yield* ctx.rpc("fail", "CardError", "card refused: ½", ctx.options({ target: "workers", retryPolicy: never }));
  } catch (e) {
    caught.push(show(e));
  }
  return caught;
});
console.log(await careful.run("careful"));

// An error that is not caught rejects the workflow, and its caller gets the error.
const careless = resonate.register("careless", function* (ctx: Context): Generator<any, void, any> {
  yield* ctx.run(broken, ctx.options({ retryPolicy: never }));
});
console.log(await careless.run("careless").catch(show));
console.log(await resonate.run("careless", "careless").catch(show)); // the recorded error

// A call of another process that fails.
console.log(await resonate.rpc("fails", "fail", "E", "m", resonate.options({ target: "workers", retryPolicy: never })).catch(show));

// A step that fails twice, and is tried three times.
let attempts = 0;
const flaky = resonate.register("flaky", function* (ctx: Context): Generator<any, string, any> {
  const attempt = () => {
    if (++attempts < 3) throw new Error("not yet");
    return `attempt ${attempts}`;
  };
  return yield* ctx.run(attempt, ctx.options({ retryPolicy: new Constant({ delay: 10, maxRetries: 5 }) }));
});
console.log(await flaky.run("flaky"));

// A call that no process answers ends at its deadline.
const unserved = resonate.options({ target: "unserved", timeout: 300 });
console.log(await resonate.rpc("late", "anything", unserved).catch(show));

await resonate.stop();

// Output:
// [ 'TypeError: no such item', 'CardError: card refused: ½' ]
// TypeError: no such item
// TypeError: no such item
// E: m
// attempt 3
// Error: Promise timedout
