"""Sessions of Gemini CLI, and of Qwen Code, which was forked from it."""
