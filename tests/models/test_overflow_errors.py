"""Wordings of providers' errors: overflows with the sizes that they report, and errors that use the same words.

Collected from the public lists that the table of wordings names, from the issues of the projects that keep them, and
made up in the same words.
"""

# ruff: noqa: E501 (one text per line)

from __future__ import annotations

import re
from typing import Any

import pytest

from windowpane.core.limits import MAXIMUM_TOKENS
from windowpane.models.overflow_errors import WORDINGS, classify_error

OVERFLOWS: list[tuple[str, int | None, int | None]] = [
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. Please reduce the length of the messages.",
        8192,
        9000,
    ),
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens (8700 in the messages, 300 in the functions).",
        8192,
        9000,
    ),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", None, None),
    (
        "Error code: 400 - {'error': {'message': '...', 'type': 'invalid_request_error', 'code': 'context_length_exceeded'}}",
        None,
        None,
    ),
    ("prompt is too long: 209000 tokens > 200000 maximum", 200000, 209000),
    ("prompt is too long: 1009000 tokens > 1000000 maximum", 1000000, 1009000),
    (
        "input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000, decrease input length or `max_tokens` and try again",
        200000,
        203192,
    ),
    (
        "Error code: 413 - {'type': 'error', 'error': {'type': 'request_too_large', 'message': 'Request exceeds the maximum size'}}",
        None,
        None,
    ),
    ("The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).", 1048576, 1050000),
    ("Error 400: The input token count exceeds the maximum number of tokens allowed 1048576.", 1048576, None),
    ("ValidationException: Input is too long for requested model.", None, None),
    (
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
        None,
        None,
    ),
    (
        "The model returned the following errors: input length and `max_tokens` exceed context limit: 199000 + 4096 > 200000",
        200000,
        203096,
    ),
    (
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
        4096,
        5000,
    ),
    ("The prompt (total length 5000) is too long to fit into the model (context length 4096).", 4096, 5000),
    ("The decoder prompt (length 40001) is longer than the maximum model length of 32768.", 32768, 40001),
    (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
        40000,
    ),
    ("Please reduce the length of the messages or completion.", None, None),
    ("This model's maximum prompt length is 131072 but the request contains 531812 tokens.", 131072, 531812),
    ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.", 4081, 4292),
    (
        "too many tokens: size limit exceeded by 3 tokens. Try using shorter or fewer inputs, or setting prompt truncation.",
        None,
        None,
    ),
    ("the request exceeds the available context size, try increasing it", None, None),
    (
        "Error code: 400 - {'error': {'code': 400, 'message': 'request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it', 'type': 'exceed_context_size_error'}}",
        8192,
        9000,
    ),
    ("The number of tokens to keep from the initial prompt is greater than the context length", None, None),
    (
        "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of only 8192 tokens",
        8192,
        9000,
    ),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512 `max_new_tokens`",
        4096,
        4512,
    ),
    ("Input validation error: `inputs` must have less than 4095 tokens. Given: 5000", 4095, 5000),
    (
        'This endpoint\'s maximum context length is 128000 tokens. However, you requested about 150000 tokens (150000 of text input). Please reduce the length of either one, or use the "middle-out" transform',
        128000,
        150000,
    ),
    ("prompt token count of 130000 exceeds the limit of 128000", 128000, 130000),
    ("invalid params, context window exceeds limit (2013)", None, None),
    ("Invalid request: Your request exceeded model token limit: 262144 (requested: 300000)", 262144, 300000),
    ("model_context_window_exceeded", None, None),
    ("Range of input length should be [1, 98304]", 98304, None),
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", 129024, None),
    (
        "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the messages, 4000 in the completion).",
        65536,
        70000,
    ),
    ("input length exceeds maximum context length", None, None),
    ("prompt too long; exceeded max context length by 812 tokens", None, None),
    (
        "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - ...",
        None,
        None,
    ),
    (
        "Error code: 400 - {'error': {'message': \"This model's maximum context length is 128000 tokens. However, your messages resulted in 128552 tokens.\", 'code': 'context_length_exceeded'}}",
        128000,
        128552,
    ),
    ("The prompt is too long: 40000, model maximum context length: 32768", 32768, 40000),
    (
        "This model's maximum context length is 32769 tokens; input tokens 40000 + max_new_tokens 1000",
        32769,
        40000,
    ),
    ("Prompt is too long: 9000 tokens", None, 9000),
    (
        "Value error, Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 140000 tokens",
        131072,
        140000,
    ),
    ("BAD_REQUEST: Token count of 40000 exceeds the 32768 limit", 32768, 40000),
    ("Token limit exceeded", None, None),
    (
        "AiError: The estimated number of input and maximum output tokens (9200) exceeded this model context window limit (8192).",
        8192,
        9200,
    ),
    ("prompt is too long: 204521 > 200000", 200000, 204521),
    ("Prompt contains 66385 tokens, too large for model with 32768 maximum context length", 32768, 66385),
    (
        "Input token count + max_tokens parameter must be less than the context length of the model being queried.",
        None,
        None,
    ),
    ("Prompt exceeds max length", None, None),
    ("Prompt 超长", None, None),
    ("Request too large for model `llama-3.3-70b-versatile` Limit 131072, content 140000", 131072, None),
    ("prompt token count exceeds the limit of 128000", 128000, None),
    ("Requested token count exceeds the model's maximum context length of 163840 tokens.", 163840, None),
    ("Token limit exceeded, please try again later.", None, None),
    ("the input length exceeds the context length of 4096", 4096, None),
    ("error_code: 336103, error_msg: Prompt tokens too long", None, None),
    ("超出了模型最大token限制。", None, None),
    ("maximum context reached", None, None),
    ("too many tokens in input", None, None),
    ("input is too long for model", None, None),
    ("exceeds the model's context window", None, None),
    ("prompt tokens (330095) exceed model maximum (278528) for base model abc", 278528, 330095),
    ("Input length (265330) exceeds model's maximum context length (262144).", 262144, 265330),
    (
        "Provider returned error: Input length 131393 exceeds the maximum allowed input length of 131040 tokens.",
        131040,
        131393,
    ),
    ("400 The input (516368 tokens) is longer than the model's context length (262144 tokens).", 262144, 516368),
    (
        "Error: 503 litellm.ServiceUnavailableError: litellm.MidStreamFallbackError: litellm.APIConnectionError: APIConnectionError: OpenAIException - Requested token count exceeds the model's maximum context length of 131072 tokens.",
        131072,
        None,
    ),
    ("400 Prompt has 256468 tokens, but the configured context size is 256000 tokens", 256000, 256468),
    ("Prompt has 5,958,968 tokens, but the configured context size is 256,000 tokens", 256000, 5958968),
    (
        '413: {"message":"Request body too large","type":"invalid_request_error","code":"body_too_large"}',
        None,
        None,
    ),
    ('413: {"message":"Request Entity Too Large"}', None, None),
    ("413 Payload Too Large", None, None),
    ("413 status code (no body)", None, None),
    ("400 (no body)", None, None),
    ("Prompt length (5056) exceeds maximum sequence length (2048)", 2048, 5056),
    (
        "The sum of prompt length (72417.0), query length (0) should not exceed max_num_tokens (69632)",
        69632,
        None,
    ),
    (
        "3010: AiError: The estimated number of input and maximum output tokens (35000) exceeded this model context window limit (24000)",
        24000,
        35000,
    ),
    (
        "This model's maximum context length is 32768 tokens. However, you requested 32000 output tokens and your prompt contains at least 769 input tokens, for a total of at least 32769 tokens. Please reduce the length of the input prompt or the number of requested output tokens. (parameter=input_tokens, value=769)",
        32768,
        32769,
    ),
    (
        "Requested token count exceeds the model's maximum context length of 256000 tokens. You requested a total of 256800 tokens: 224800 tokens from the input messages and 32000 tokens for the completion.",
        256000,
        256800,
    ),
    (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 212745 tokens (122163 of text input, 58582 of tool input, 32000 in the output). Please reduce the length of either one, or use",
        131072,
        212745,
    ),
    (
        "Unable to submit request because the input token count is 32825 but model only supports up to 32768. Reduce the input token count and try again.",
        32768,
        32825,
    ),
    ("Too many input tokens. Max input tokens: 128000, request input token count: 140000", 128000, 140000),
    ("the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this model", 8192, 9000),
    ('{"code": "token_quantity_exceeded", "message": "input token count is above the limit"}', None, None),
    ("length of prompt_tokens (40000) must be less than max_seq_len (32768).", 32768, 40000),
    (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 2211484 tokens.",
        272000,
        2211484,
    ),
    (
        "Please reduce the length of the messages or completion. Current length is 10000 while limit is 8192",
        8192,
        10000,
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 32768 tokens and your request has 29000 input tokens (4096 > 32768 - 29000).",
        32768,
        33096,
    ),
    ("max_tokens must be at least 1, got -46771. (parameter=max_tokens, value=-46771)", None, None),
    ("tokens in request more than max tokens allowed", None, None),
    ("Context limit is 49152 tokens; prompt=51402 leaves 0 output tokens, below the minimum 16", 49152, 51402),
    ("Request too long: 121692 input tokens over the limit of 46112", 46112, 121692),
    (
        '{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}',
        4096,
        5000,
    ),
    ("Requested tokens (2100) exceed context window of 2048", 2048, 2100),
    (
        "Token indices sequence length is longer than the specified maximum sequence length for this model (1500 > 1024)",
        1024,
        1500,
    ),
    ("Prompt tokens (9000) exceeds context size (8192)", 8192, 9000),
    ("Model context window is 128k tokens, you requested 256k tokens", None, None),
    ("Context window exceeded: requested 12000 tokens", None, 12000),
    ("Prompt too large for this model", None, None),
    ("ValidationException: The input is too long", None, None),
    ("ValidationException: Input exceeds the max input token limit", None, None),
    ("ollama: context length exceeded for llama3", None, None),
    ("total tokens exceeds the model's max of 4096", 4096, None),
    ("maximum number of input tokens exceeded", None, None),
    ("Context size has been exceeded.", None, None),
    ("context_overflow", None, None),
    ("Total tokens of image and text exceed max message tokens", None, None),
    ("Your input context is too long", None, None),
    ("Request contains 35000 tokens, which exceeds the limit of 32768", 32768, 35000),
    ("Request payload size exceeds the limit: 20971520 bytes.", None, None),
    ("model_max_prompt_tokens_exceeded", None, None),
    ("Input token length too long", None, None),
    ("The length of tokens in the request is too long", None, None),
    ("Conversation length exceeded. Please start a new session", None, None),
    ("上下文长度超出限制", None, None),
    ("Request body too large for gpt-4o model. Max size: 8000 tokens.", 8000, None),
    ("tokens_limit_reached", None, None),
    ("The request exceeds the maximum allowed number of bytes. (request_too_large)", None, None),
    ("input too long for processing", None, None),
    ("request too large for model", None, None),
    ("token limit reached", None, None),
    ("content_too_large", None, None),
    ("requested input length 5000 exceeds maximum input length 4096", 4096, 5000),
    ("Input is longer than the model's context length", None, None),
    ("Request is over the maximum context of this endpoint", None, None),
    ("Total of 9000 tokens exceeds the limit for this model", None, 9000),
    ("Request is above the token limit for this model", None, None),
    ("prompt is too long: 150000 tokens exceeds maximum of 128000", 128000, 150000),
    ("The number of tokens in the prompt exceeds the model's maximum context length of 32768", 32768, None),
    ("exceededContextWindowSize", None, None),
    ("Prompt length 9000 is greater than max_seq_len 8192", 8192, 9000),
    ("n_keep: 9800 >= n_ctx: 8192", 8192, 9800),
    (
        "The number of tokens to keep from the initial prompt (9800) is greater than the context length (8192).",
        8192,
        9800,
    ),
    (
        "This model's maximum context length is 8191 tokens, however you requested 10346 tokens (10346 in your prompt; 5 for the completion). Please reduce your prompt; or completion length.",
        8191,
        10346,
    ),
    ("Prompt is too long", None, None),
    ("SambaNovaException: maximum context length is 512 tokens", 512, None),
    ("litellm.ContextWindowExceededError: foo", None, None),
    ("string: INVALID_ARGUMENT: exceeds the maximum number of tokens allowed (32768)", 32768, None),
    ("Your input exceeds the model's context window", None, None),
    ("The prompt is too long for this model's context", None, None),
    ("maximum context length exceeded", None, None),
    ("messages too long: context window overflow", None, None),
    (
        "Requested generation length 1000 is not possible! The provided prompt is 8000 tokens long, so generating 1000 tokens requires a sequence length of 9000, but the maximum supported sequence length is just 8192!",
        8192,
        None,
    ),
    (
        "Codex ran out of room in the model's context window. Start a new conversation or clear earlier history before retrying.",
        None,
        None,
    ),
    ("Context length 5000 is greater than max_seq_len 4096", 4096, 5000),
    ("n_ctx_slot = 4096, n_prompt_tokens = 5000", 4096, 5000),
    ("slot context: 4096 tokens, prompt 5000 tokens", None, None),
    ("Content contains 4089 tokens, which exceeds the maximum allowed context size of 4096.", 4096, None),
    ("max tokens of 8192 exceeded. The maximum number of tokens for this model is 8192", 8192, None),
    ("Input validation error: inputs must have less than 1024 tokens. Given: 1200", 1024, 1200),
    ("Conversation too long. Press esc twice to go up a few messages and try again.", None, None),
    ("Input too long. Received 5000 tokens, but the maximum input length is 4095", 4095, 5000),
    ("the max tokens of the input exceed 2048", 2048, None),
    ("Context limit reached", None, None),
    ("The input is too large.", None, None),
    ("This model's maximum context length is 8192 tokens. Please reduce the length of the prompt", 8192, None),
    (
        "An error occurred (ValidationException) when calling the InvokeModel operation: Input is too long for requested model.",
        None,
        None,
    ),
    (
        'litellm.BadRequestError: AnthropicException - {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}',
        200000,
        208310,
    ),
    ("Please use a shorter prompt: length of prompt (5000) + max_tokens (500) > max_seq_len (4096)", 4096, None),
    ("The sum of prompt tokens and maximum tokens exceeds the model context size", None, None),
    ("token数量超过上限。对话历史+问题的字数太多", None, None),
    ("Input exceeds context window", None, None),
    ("Your prompt is too long. Please reduce the number of input tokens", None, None),
    ("Total length of input and output tokens (9000) exceeds the maximum sequence length (8192)", 8192, 9000),
    ("inputs too long for model, 9000 > 8192", 8192, 9000),
    ("Request exceeds the model's token limit", None, None),
    ("messages exceed the model context limit of 8192 tokens", 8192, None),
    ("Error: 400 The total tokens requested (9000) exceed the model limit (8192)", 8192, 9000),
    ("the conversation exceeds the context window", None, None),
    ("The prompt size exceeds the context window size and cannot be processed.", None, None),
    ("Number of tokens (757) exceeded maximum context length (512).", 512, 757),
    ("Exceeded model context length", None, None),
    ("This request has 9000 tokens, the model supports 8192", 8192, 9000),
    ("Requested 9000 tokens, but the model only supports 8192 tokens", 8192, 9000),
    ("message length exceeds the context window", None, None),
    ("Too many tokens in prompt", None, None),
    ("input sequence length 9000 exceeds 8192", 8192, 9000),
    ("total message size exceeds limit of 128000 tokens", 128000, None),
    ("Cannot process: 9000 prompt tokens > 8192 context", None, None),
    ("input_tokens (9000) + max_tokens (1000) must not exceed 8192", 8192, None),
    ('{"error":"prompt_too_long"}', None, None),
    ("error: context_window_exceeded", None, None),
    ("The text is too long: 9000 tokens. Max 8192.", 8192, 9000),
    ("Input text exceeds the maximum token limit", None, None),
    ("Payload too large: prompt exceeds model window", None, None),
    ("Maximum prompt size exceeded", None, None),
    ("Maximum tokens exceeded for this model's context", None, None),
    ("This request needed 40,000 tokens, but the model's context window holds only 32,768.", None, None),
    ("failed to process request: prompt has 5120 tokens; context window is 4096", 4096, 5120),
    ("The input size exceeds the maximum context of the model", None, None),
    ("prompt (5000 tokens) does not fit into the context (4096)", None, None),
    ("Error: context length of 8192 exceeded", 8192, None),
    ("prompt + max_new_tokens exceed the model's window (8192)", 8192, None),
    (
        "The message you submitted was too long, please reload the conversation and submit something shorter.",
        None,
        None,
    ),
    ("reka: conversation history is too long: 140000 > 131072 tokens", 131072, 140000),
    ("ERR_PROMPT_TOO_LONG", None, None),
    ("PromptTooLongError", None, None),
    ("cannot truncate prompt", None, None),
    ("bad request: message array's total tokens 70000 greater than the allowed 65536", None, None),
    ("LengthError: Requested 9001 tokens but model max is 8192", 8192, 9001),
    ("The prompt is 9001 tokens, max allowed 8192", 8192, None),
    ('{"status_code":1039,"status_msg":"token limit"}', None, None),
    ("内容过长", None, None),
]
"""Text, limit and requested tokens."""

OTHERS = [
    "Number of request tokens has exceeded your per-model limit",
    "input token limit exceeded for this minute",
    "Your trial token limit is reached",
    "Session token limit reached, log in again",
    "Request timed out: prompt processing exceeded 300s",
    "Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 25000, Requested 9000. Please try again in 8s.', 'type': 'tokens', 'code': 'rate_limit_exceeded'}}",
    "This request would exceed your organization's rate limit of 30,000 input tokens per minute.",
    "Extra usage is required for long context requests.",
    "Number of request tokens has exceeded your per-minute rate limit",
    "Request too large for model `llama-3.3-70b-versatile` on tokens per minute (TPM): Limit 12000, Requested 15000, please reduce your message size and try again.",
    "Too many requests, please wait before trying again. Too many tokens, please wait before trying again. (ThrottlingException)",
    "Error code: 500 - {'error': {'message': 'The server had an error while processing your request'}}",
    "Overloaded",
    "max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5",
    "max_tokens is too large: 300000. This model supports at most 16384 completion tokens",
    "messages.3: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.",
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    "tools.0.custom.input_schema: JSON schema is invalid. Property 'context_window' must be an object",
    "Invalid value for 'context_length': expected integer",
    "invalid x-api-key",
    "messages.0.content.1.image.source: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
    "Invalid 'messages[3].content': string too long. Expected a string with maximum length 10485760, but got a string with length 12000000 instead.",
    "Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2100 instead.",
    "You exceeded your current quota, please check your plan and billing details.",
    "The long context beta is not yet available for this subscription. context window of 1M requires tier 4",
    "Your credit balance is too low to access the Anthropic API.",
    "Too many tokens per day, please wait before trying again.",
    "too many tokens processed",
    "Throttling error: Too many tokens, please wait before trying again.",
    "Service unavailable: The service is temporarily unavailable.",
    "Rate limit exceeded, please retry after 30 seconds.",
    "This request exceeds the limit of 30000 tokens per minute",
    "Too many tokens per minute",
    "request reached organization TPD rate limit, current: 1506556, limit: 1500000",
    "too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model - received 8192.",
    "Range of max_tokens should be [1, 8192]",
    "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 8193 (exclusive).",
    "Output token limit reached for this request",
    "Completion token limit is too low for this model",
    "max_output_tokens is above the token limit",
    "maxOutputTokens is too large for this model's context length of 8192 tokens",
    "'max_tokens' or 'max_completion_tokens' is too large: 100000. This model's maximum context length is 8192 tokens and your request has 50 input tokens (100000 > 8192 - 50).",
    "Unsupported parameter: 'max_tokens' is not supported with this model.",
    "Invalid 'metadata.key': string too long. Expected at most 64 characters.",
    "messages: text content blocks must be non-empty",
    "Model context window too small (minimum is 128k tokens)",
    "Context window too small: minimum is 1000 tokens",
    "exceeded your current quota",
    "context deadline exceeded",
    "image dimensions exceed max allowed size: 8000 pixels",
    "Claude's response exceeded the 32000 output token maximum.",
    "The monthly token limit exceeded for your account",
    "API Error: Claude's response exceeded the 32000 output token maximum. To configure this behavior, set the CLAUDE_CODE_MAX_OUTPUT_TOKENS environment variable.",
    "run_command: grep: the context window is not configured",
    "{'error': {'message': \"Unknown parameter: 'context_window'.\", 'type': 'invalid_request_error'}}",
    "Extra inputs are not permitted: max_context_length",
    "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 40000. The input or output tokens must be reduced in order to run successfully.",
    "Number of concurrent connections to Claude exceeds your rate limit.",
    "Your account has exceeded the token usage limit for the month",
    "max_tokens_exceeded",
    "token_limit_exceeded: credit-based cap",
    "Resource exhausted. Please try again later.",
    "Invalid 'messages': too many messages",
    "Invalid value: 'context_window'. Supported values are: ...",
    "1 validation error: messages.0.max_input_length Field required",
    "Error code: 402 - insufficient credits: this request requires more tokens than your balance",
    "API key is invalid",
    "function name too long",
    "tools: array exceeds maximum length 128",
    "The requested model does not exist",
    "prompt_cache_key: string too long",
    "System is overloaded",
    "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1100 instead.",
    "messages.5.content.0.pdf: A maximum of 100 PDF pages may be provided.",
    "Your organization has exceeded its token budget",
    "token budget exceeded",
    "JWT token exceeds maximum length",
    "Your access token has exceeded its lifetime",
    "Unrecognized key(s) in object: 'context_length_exceeded'",
    "Audio input is too long: max 25 minutes",
    "Token limit reached for today",
    "Tokens rate exceeded",
    "You've reached your token limit for this billing cycle",
    "Concurrency limit exceeded for tokens",
    "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 16384, but got 100000 instead.",
    "max_tokens: must be less than or equal to 8192",
    "`max_tokens` must be greater than `thinking.budget_tokens`",
    "thinking.budget_tokens: 40000 exceeds max_tokens",
    "body.context_window: Input should be a valid integer",
    "context_length: Field required",
    "Switched over to the model with a larger context window",
    "You have exceeded the 5-hour usage limit",
    "Stop sequences too long",
    "Invalid 'input[5].output': string too long",
    "tool output is too large",
    "Monthly tokens exceeded",
    "This request would exceed the rate limit for your organization of 40,000 input tokens per minute. For details, refer to: docs. You can see the response headers for current usage. Please reduce the prompt length or the maximum tokens requested, or try again later.",
    "Quota exceeded for online_prediction_input_tokens_per_minute",
    "max_completion_tokens exceeds the model limit of 16384",
    "Requested max_tokens (100000) exceeds the maximum output tokens (8192)",
    "The model's output exceeded the maximum number of tokens",
    "finish_reason length: response exceeded max tokens",
    "number of tools exceeds the limit of 128",
    "metadata exceeds the limit of 16 keys",
    "The request exceeds the maximum number of images (20)",
    "temperature exceeds the maximum of 2",
    "n exceeds the limit of 8",
    "top_k exceeds limit",
    "Your prompt was flagged as too long of a violation",
    "tools.0.custom.input_schema.properties.max_context_length: Input should be a valid dictionary",
    "Function 'get_context_window' exceeds 64 characters",
    "Schema validation failed: context_window: 200001 is greater than the maximum of 200000",
    "messages.0.content.0.text.cache_control: maximum of 4 blocks exceeded",
    "embedding input batch size exceeds 2048",
    "Invalid file: document exceeds 100 pages",
    "The batch exceeds the maximum number of requests (100000)",
    "long context pricing tier required: prompts above 200K tokens need usage tier 4",
    "API key token limit exceeded for plan",
    "Spending limit exceeded",
    "Workspace token allowance exceeded",
    "request timed out while reading prompt tokens",
    "connect ECONNREFUSED",
    "Unexpected token < in JSON at position 0",
    "Invalid token count parameter",
]


class RefusalError(Exception):
    """An error of a client, with the status of the response."""

    def __init__(self, message: str, *, status_code: int = 400, code: str | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.code = code


class RateLimitError(Exception):
    """The class of OpenAI's and Anthropic's clients for status 429."""


class ContextWindowExceededError(Exception):
    """The class of LiteLLM."""


@pytest.mark.parametrize(("text", "limit", "requested"), OVERFLOWS)
def test_an_overflow_is_recognized_in_every_wording_with_its_sizes(
    text: str, limit: int | None, requested: int | None
) -> None:
    error = classify_error(RefusalError(text))

    assert (error.kind, error.limit_tokens, error.requested_tokens) == ("overflow", limit, requested)


@pytest.mark.parametrize("text", OTHERS)
def test_an_error_that_a_smaller_window_does_not_help_is_not_an_overflow(text: str) -> None:
    assert classify_error(RefusalError(text)).kind != "overflow"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (None, "overflow"),
        (RefusalError("bad request", code="context_length_exceeded"), "overflow"),
        (ContextWindowExceededError("the call failed"), "overflow"),
        (RefusalError("too many tokens", status_code=429), "transient"),
        (RateLimitError("Request too large for this model"), "transient"),
        ("429 too many tokens", "transient"),
        ("400 token limit exceeded", "overflow"),
        (TimeoutError(), "transient"),
        (RefusalError("Bad gateway", status_code=502), "transient"),
        ("messages with role 'tool' must be followed by tool messages", "malformed"),
        ("max_tokens must be at least 1", "unknown"),
    ],
)
def test_status_code_and_class_of_an_error_count_beside_its_text(error: Any, kind: str) -> None:
    assert classify_error(error).kind == kind


def test_the_output_that_was_requested_is_read() -> None:
    text = "input length and `max_tokens` exceed context limit: 195000 + 8192 > 200000"

    assert classify_error(text).output_tokens == 8_192


@pytest.mark.parametrize("size", ["3", "255", str(MAXIMUM_TOKENS + 1), "1" * 30])
def test_a_size_that_no_window_has_is_not_taken_for_the_limit(size: str) -> None:
    error = classify_error(f"This model's maximum context length is {size} tokens")

    assert (error.kind, error.limit_tokens) == ("overflow", None)


def test_each_wording_names_where_it_is_listed() -> None:
    assert all(re.fullmatch(r"(?:https://\S+ ?)+", wording.source) for wording in WORDINGS)
