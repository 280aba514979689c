// A workflow that calls 100 functions at once, and workflows at once.
import { Resonate } from "@resonatehq/sdk";

const resonate = new Resonate({ group: "fanout" });
const workers = resonate.options({ target: "workers" });

console.log("100 calls:", await resonate.rpc("fanout", "fanOut", 100, workers));

const begun = [];
for (let i = 0; i < 20; i++) begun.push(await resonate.beginRpc<number>(`fanout-${i}`, "fanOut", i, workers));
const sums = await Promise.all(begun.map((handle) => handle.result()));
console.log("20 workflows:", sums.join(" "));

await resonate.stop();

// Output:
// 100 calls: 5050
// 20 workflows: 0 1 3 6 10 15 21 28 36 45 55 66 78 91 105 120 136 153 171 190
