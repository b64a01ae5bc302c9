"""Sends calls by google-genai's client, directly and by a proxy, and prints what it received.

Usage: python -m tests.providers.gemini_bytes URL...
"""

from __future__ import annotations

import sys

from google import genai

QUESTION = "Compare the weather in Paris and Rome. " * 500

for url in sys.argv[1:]:
    client = genai.Client(api_key="k", http_options={"base_url": url})
    reply = client.models.generate_content(model="gemini-2.5-flash", contents=QUESTION)
    print(reply.model_dump_json(exclude={"sdk_http_response"}))
    for piece in client.models.generate_content_stream(model="gemini-2.5-flash", contents=QUESTION):
        print(piece.model_dump_json(exclude={"sdk_http_response"}))
