// One conversation of the Vercel AI SDK, whose spans are sent to a receiver.
// Usage: node run.mjs PROVIDER ENDPOINT SYSTEM QUESTION REPORT SESSION
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, tool } from "ai";
import { NodeTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { z } from "zod";

const [providerUrl, endpoint, system, question, report, sessionId] = process.argv.slice(2);
const processor = new BatchSpanProcessor(new OTLPTraceExporter({ url: `${endpoint}/v1/traces` }));
const tracing = new NodeTracerProvider({ spanProcessors: [processor] });
tracing.register();
const openai = createOpenAI({ apiKey: "k", baseURL: `${providerUrl}/v1` });
const result = await generateText({
  model: openai.chat("gpt-4o"),
  system,
  prompt: question,
  stopWhen: stepCountIs(4),
  tools: {
    weather: tool({
      description: "Weather.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => report.replaceAll("CITY", city),
    }),
  },
  experimental_telemetry: { isEnabled: true, metadata: { sessionId } },
});
console.log(result.text);
await tracing.shutdown();
