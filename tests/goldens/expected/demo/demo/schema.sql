-- index alerts_at
CREATE INDEX alerts_at ON alerts (fired_at DESC, fired_seq DESC)
-- index alerts_unresolved_at
CREATE INDEX alerts_unresolved_at ON alerts (fired_at DESC, fired_seq DESC) WHERE resolved_turn IS NULL
-- index blocks_left
CREATE INDEX blocks_left ON blocks (session, left_seq, entered_seq)
-- index call_ids_call
CREATE INDEX call_ids_call ON call_ids (call)
-- index events_at
CREATE INDEX events_at ON events (at)
-- index events_session
CREATE INDEX events_session ON events (session)
-- index events_type
CREATE INDEX events_type ON events (type, session)
-- index heads_session
CREATE INDEX heads_session ON heads (session_id, revision)
-- index pruned_days_day
CREATE INDEX pruned_days_day ON pruned_days (day)
-- index received_streams_of
CREATE INDEX received_streams_of ON received_streams (session_id)
-- index replays_at
CREATE INDEX replays_at ON replays (at)
-- index session_days_repeated
CREATE INDEX session_days_repeated ON session_days (day) WHERE repeated = 1
-- index sessions_compacted
CREATE INDEX sessions_compacted ON sessions (agent, model, last_at DESC) WHERE compaction_evidence = 'recorded' AND current = 1
-- index sessions_cost
CREATE INDEX sessions_cost ON sessions (current, cost_dollars DESC)
-- index sessions_parent
CREATE INDEX sessions_parent ON sessions (parent_session_id, current) WHERE parent_session_id IS NOT NULL
-- index sessions_pressure
CREATE INDEX sessions_pressure ON sessions (current, pressure DESC, last_at DESC)
-- index sessions_recent
CREATE INDEX sessions_recent ON sessions (current, last_at DESC)
-- index sessions_regret
CREATE INDEX sessions_regret ON sessions (current, regrets DESC, last_at DESC)
-- index sessions_same_as
CREATE INDEX sessions_same_as ON sessions (same_as, current) WHERE same_as <> ''
-- index sqlite_autoindex_content_numbers_1
None
-- index sqlite_autoindex_event_types_1
None
-- index sqlite_autoindex_sessions_1
None
-- table agents
CREATE TABLE agents ("name" TEXT NOT NULL, PRIMARY KEY (name)) WITHOUT ROWID
-- table alerts
CREATE TABLE alerts ("session" INTEGER NOT NULL, "alert" TEXT NOT NULL, "crossing_turn" INTEGER NOT NULL, "fired_seq" INTEGER NOT NULL, "severity" TEXT NOT NULL, "fired_turn" INTEGER NOT NULL, "fired_at" REAL, "resolved_turn" INTEGER, "resolved_at" REAL, "value" REAL, "threshold" REAL, "summary" TEXT NOT NULL, "delivered" TEXT NOT NULL DEFAULT '[]', "failed" TEXT NOT NULL DEFAULT '[]', PRIMARY KEY (session, alert, crossing_turn)) WITHOUT ROWID
-- table blocks
CREATE TABLE blocks ("session" INTEGER NOT NULL, "block_id" TEXT NOT NULL, "event_seq" INTEGER NOT NULL, "entered_seq" INTEGER NOT NULL, "left_seq" INTEGER NOT NULL, "position" INTEGER NOT NULL, "turn_removed" INTEGER, "removed_by" TEXT, "reason" TEXT, "score" REAL, "replaced_by" TEXT, "last_referenced" INTEGER, "references" INTEGER NOT NULL DEFAULT 0, "regretted_turn" INTEGER, "tool" TEXT, "target" TEXT, "tokens" INTEGER NOT NULL DEFAULT 0, "calls_in" INTEGER NOT NULL DEFAULT 0, "price_in" INTEGER NOT NULL DEFAULT 0, "calls_out" INTEGER, "price_out" INTEGER, "content_type" TEXT NOT NULL DEFAULT '', PRIMARY KEY (session, block_id)) WITHOUT ROWID
-- table call_ids
CREATE TABLE call_ids ("session" INTEGER NOT NULL, "call" INTEGER NOT NULL, PRIMARY KEY (session, call)) WITHOUT ROWID
-- table content_numbers
CREATE TABLE content_numbers ("id" INTEGER PRIMARY KEY AUTOINCREMENT, "digest" TEXT NOT NULL, UNIQUE (digest))
-- table content_queue
CREATE TABLE content_queue ("digest" TEXT NOT NULL, PRIMARY KEY (digest)) WITHOUT ROWID
-- table contents
CREATE TABLE contents ("digest" TEXT NOT NULL, "chars" INTEGER NOT NULL, "preview" TEXT NOT NULL, "body" BLOB NOT NULL, PRIMARY KEY (digest)) WITHOUT ROWID
-- table contents_text
CREATE VIRTUAL TABLE contents_text USING fts5 (text, content = '', columnsize = 0, detail = none, tokenize = 'trigram')
-- table contents_text_config
CREATE TABLE 'contents_text_config'(k PRIMARY KEY, v) WITHOUT ROWID
-- table contents_text_data
CREATE TABLE 'contents_text_data'(id INTEGER PRIMARY KEY, block BLOB)
-- table contents_text_idx
CREATE TABLE 'contents_text_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID
-- table copied_from
CREATE TABLE copied_from ("source" TEXT NOT NULL, "last_seq" INTEGER NOT NULL, "heads" INTEGER NOT NULL, "finished" INTEGER NOT NULL, PRIMARY KEY (source)) WITHOUT ROWID
-- table daily
CREATE TABLE daily ("day" INTEGER NOT NULL, "agent" TEXT NOT NULL, "model" TEXT NOT NULL, "release" TEXT NOT NULL, "project" TEXT NOT NULL, "pruned" INTEGER NOT NULL, "calls" INTEGER NOT NULL, "input_tokens" INTEGER NOT NULL, "output_tokens" INTEGER NOT NULL, "cache_read_tokens" INTEGER NOT NULL, "cost_micros" INTEGER NOT NULL, "compactions" INTEGER NOT NULL, "fidelity_millis" INTEGER NOT NULL, "fidelities" INTEGER NOT NULL, "regrets" INTEGER NOT NULL, "cache_breaks" INTEGER NOT NULL, "cache_break_micros" INTEGER NOT NULL, "estimated_outputs" INTEGER NOT NULL, "sessions" INTEGER NOT NULL, "peaks" INTEGER NOT NULL, "peak_sum_millis" INTEGER NOT NULL, "red_sessions" INTEGER NOT NULL, PRIMARY KEY (day, agent, model, release, project, pruned)) WITHOUT ROWID
-- table endpoints
CREATE TABLE endpoints ("machine" TEXT NOT NULL, "host" TEXT NOT NULL, "port" INTEGER NOT NULL, "pid" INTEGER NOT NULL, "started_at" REAL NOT NULL, "scheme" TEXT NOT NULL, PRIMARY KEY (machine, host, port)) WITHOUT ROWID
-- table event_types
CREATE TABLE event_types ("id" INTEGER PRIMARY KEY AUTOINCREMENT, "name" TEXT NOT NULL, "events" INTEGER NOT NULL DEFAULT 0, UNIQUE (name))
-- table events
CREATE TABLE events ("seq" INTEGER PRIMARY KEY, "session" INTEGER NOT NULL, "turn" INTEGER NOT NULL, "type" INTEGER NOT NULL, "at" REAL, "body" BLOB NOT NULL, "hash" BLOB NOT NULL)
-- table events_text
CREATE VIRTUAL TABLE events_text USING fts5 (
    text, content = '', columnsize = 0, detail = none,
    tokenize = "unicode61 remove_diacritics 0 tokenchars '_'"
)
-- table events_text_config
CREATE TABLE 'events_text_config'(k PRIMARY KEY, v) WITHOUT ROWID
-- table events_text_data
CREATE TABLE 'events_text_data'(id INTEGER PRIMARY KEY, block BLOB)
-- table events_text_idx
CREATE TABLE 'events_text_idx'(segid, term, pgno, PRIMARY KEY(segid, term)) WITHOUT ROWID
-- table heads
CREATE TABLE heads ("id" INTEGER PRIMARY KEY, "kind" TEXT NOT NULL, "session_id" TEXT NOT NULL, "revision" INTEGER NOT NULL, "events" INTEGER NOT NULL, "head" BLOB NOT NULL, "keyed_by" TEXT NOT NULL, "at" REAL NOT NULL, "signed_by" TEXT NOT NULL, "hash" BLOB NOT NULL)
-- table late_events
CREATE TABLE late_events ("session" INTEGER NOT NULL, "turn" INTEGER NOT NULL, "seq" INTEGER NOT NULL, PRIMARY KEY (session, turn, seq)) WITHOUT ROWID
-- table pruned_days
CREATE TABLE pruned_days ("number" INTEGER NOT NULL, "day" INTEGER NOT NULL, "agent" TEXT NOT NULL, "model" TEXT NOT NULL, "release" TEXT NOT NULL, "project" TEXT NOT NULL, "peak_millis" INTEGER NOT NULL, PRIMARY KEY (number, day, agent, model, release)) WITHOUT ROWID
-- table quotas
CREATE TABLE quotas ("agent" TEXT NOT NULL, "minutes" INTEGER NOT NULL, "resets_at" INTEGER NOT NULL, "percent" INTEGER NOT NULL, "at" REAL NOT NULL, PRIMARY KEY (agent, minutes, resets_at, percent)) WITHOUT ROWID
-- table read_files
CREATE TABLE read_files ("path" TEXT NOT NULL, "inode" INTEGER NOT NULL, "size" INTEGER NOT NULL, "mtime_ns" INTEGER NOT NULL, "reading" TEXT NOT NULL, "report" BLOB NOT NULL, PRIMARY KEY (path)) WITHOUT ROWID
-- table received_streams
CREATE TABLE received_streams ("stream_id" TEXT NOT NULL, "session_id" TEXT NOT NULL, "numbers" TEXT NOT NULL, PRIMARY KEY (stream_id, session_id)) WITHOUT ROWID
-- table replay_runs
CREATE TABLE replay_runs ("replay" TEXT NOT NULL, "number" INTEGER NOT NULL, "session" TEXT NOT NULL, "setup" TEXT NOT NULL, "kind" TEXT NOT NULL, "policy" TEXT NOT NULL, "preset" TEXT NOT NULL, "limit_tokens" INTEGER NOT NULL, "measures" TEXT NOT NULL, "config" TEXT NOT NULL, "timeline" BLOB NOT NULL, "note" TEXT NOT NULL, PRIMARY KEY (replay, number)) WITHOUT ROWID
-- table replays
CREATE TABLE replays ("id" TEXT NOT NULL, "name" TEXT NOT NULL, "at" REAL NOT NULL, "sessions" INTEGER NOT NULL, "runs" INTEGER NOT NULL, "notes" TEXT NOT NULL, PRIMARY KEY (id)) WITHOUT ROWID
-- table schema_versions
CREATE TABLE schema_versions ("version" INTEGER PRIMARY KEY, "applied_at" REAL NOT NULL)
-- table session_days
CREATE TABLE session_days ("session" INTEGER NOT NULL, "day" INTEGER NOT NULL, "agent" TEXT NOT NULL, "model" TEXT NOT NULL, "release" TEXT NOT NULL, "calls" INTEGER NOT NULL, "input_tokens" INTEGER NOT NULL, "output_tokens" INTEGER NOT NULL, "cache_read_tokens" INTEGER NOT NULL, "cost_micros" INTEGER NOT NULL, "compactions" INTEGER NOT NULL, "fidelity_millis" INTEGER NOT NULL, "fidelities" INTEGER NOT NULL, "regrets" INTEGER NOT NULL, "cache_breaks" INTEGER NOT NULL, "cache_break_micros" INTEGER NOT NULL, "estimated_outputs" INTEGER NOT NULL, "peak_millis" INTEGER NOT NULL, "project" TEXT NOT NULL DEFAULT '', "repeated" INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session, day, agent, model, release)) WITHOUT ROWID
-- table sessions
CREATE TABLE sessions ("key" INTEGER PRIMARY KEY AUTOINCREMENT, "session_id" TEXT NOT NULL, "revision" INTEGER NOT NULL, "current" INTEGER NOT NULL, "keyed_by" TEXT NOT NULL, "counted_from" INTEGER NOT NULL, "head_seq" INTEGER NOT NULL, "head_hash" BLOB NOT NULL, "events" INTEGER NOT NULL, "agent" TEXT NOT NULL, "model" TEXT NOT NULL, "source" TEXT NOT NULL, "parent_session_id" TEXT, "started_at" REAL, "last_at" REAL, "ended" INTEGER NOT NULL, "incomplete" INTEGER NOT NULL, "turns" INTEGER NOT NULL, "exchanges" INTEGER NOT NULL, "windows" INTEGER NOT NULL, "limit_tokens" INTEGER, "limit_source" TEXT, "used_tokens" INTEGER NOT NULL, "peak_used_tokens" INTEGER NOT NULL, "utilization" REAL, "peak_utilization" REAL, "zone" TEXT, "worst_zone" TEXT, "velocity" REAL, "turns_until_red" REAL, "cost_dollars" REAL, "input_tokens" INTEGER NOT NULL, "output_tokens" INTEGER NOT NULL, "cache_read_tokens" INTEGER NOT NULL, "evicted_blocks" INTEGER NOT NULL, "evicted_tokens" INTEGER NOT NULL, "compressions" INTEGER NOT NULL, "regrets" INTEGER NOT NULL, "overflows" INTEGER NOT NULL, "fidelity" REAL, "firing" INTEGER NOT NULL, "worst_severity" TEXT, "last_event" TEXT NOT NULL, "pressure" REAL NOT NULL, "last_turn" INTEGER NOT NULL, "count_source" TEXT, "compaction_tokens" INTEGER, "compaction_evidence" TEXT, "turns_until_compaction" REAL, "cache_breaks" INTEGER NOT NULL DEFAULT 0, "cache_break_tokens" INTEGER NOT NULL DEFAULT 0, "cache_break_dollars" REAL, "carried_price" INTEGER NOT NULL DEFAULT 0, "title" TEXT NOT NULL DEFAULT '', "title_source" TEXT NOT NULL DEFAULT '', "folder" TEXT NOT NULL DEFAULT '', "repository" TEXT NOT NULL DEFAULT '', "branch" TEXT NOT NULL DEFAULT '', "agent_version" TEXT NOT NULL DEFAULT '', "label" TEXT NOT NULL DEFAULT '', "compressions_in_task" INTEGER NOT NULL DEFAULT 0, "project" TEXT NOT NULL DEFAULT '', "same_as" TEXT NOT NULL DEFAULT '', "estimated_outputs" INTEGER NOT NULL DEFAULT 0, "copied_turns" INTEGER NOT NULL DEFAULT 0, "stated_input_tokens" INTEGER, "stated_output_tokens" INTEGER, "stated_cost_dollars" REAL, "memory" BLOB NOT NULL, UNIQUE (session_id, revision))
-- table sqlite_sequence
CREATE TABLE sqlite_sequence(name,seq)
-- table store
CREATE TABLE store ("one" INTEGER PRIMARY KEY, "next_seq" INTEGER NOT NULL, "writes" INTEGER NOT NULL, "flushes" INTEGER NOT NULL, "indexed_seq" INTEGER NOT NULL, "digest_key" BLOB NOT NULL, "metric_base" BLOB)
-- table turns
CREATE TABLE turns ("session" INTEGER NOT NULL, "turn" INTEGER NOT NULL, "first_seq" INTEGER NOT NULL, "call_seq" INTEGER, "window_id" INTEGER NOT NULL, "at" REAL, "model" TEXT NOT NULL, "used_before" INTEGER, "used_after" INTEGER, "used_final" INTEGER, "count_source" TEXT, "components" TEXT NOT NULL, "limit_tokens" INTEGER, "usable_tokens" INTEGER, "red_tokens" INTEGER, "zone" TEXT, "utilization" REAL, "velocity" REAL, "added_tokens" INTEGER NOT NULL, "turns_until_red" REAL, "turns_until_red_p10" REAL, "turns_until_red_p90" REAL, "burn_rate" REAL, "stale_tokens" INTEGER NOT NULL, "duplicate_tokens" INTEGER NOT NULL, "input_tokens" INTEGER, "output_tokens" INTEGER, "cache_read_tokens" INTEGER, "cache_write_tokens" INTEGER, "cost_dollars" REAL, "latency_seconds" REAL, "estimate_error" REAL, "compaction_tokens" INTEGER, "turns_until_compaction" REAL, "turns_until_compaction_p10" REAL, "turns_until_compaction_p90" REAL, "recorded_output_tokens" INTEGER, "list_cost_dollars" REAL, PRIMARY KEY (session, turn)) WITHOUT ROWID
-- trigger session_days_added
CREATE TRIGGER session_days_added AFTER INSERT ON session_days BEGIN INSERT INTO daily (day, agent, model, release, project, pruned, calls, input_tokens, output_tokens, cache_read_tokens, cost_micros, compactions, fidelity_millis, fidelities, regrets, cache_breaks, cache_break_micros, estimated_outputs, sessions, peaks, peak_sum_millis, red_sessions) VALUES (NEW.day, NEW.agent, NEW.model, NEW.release, NEW.project, 0, +(NEW.calls), +(NEW.input_tokens), +(NEW.output_tokens), +(NEW.cache_read_tokens), +(NEW.cost_micros), +(NEW.compactions), +(NEW.fidelity_millis), +(NEW.fidelities), +(NEW.regrets), +(NEW.cache_breaks), +(NEW.cache_break_micros), +(NEW.estimated_outputs), +(1), +(CASE WHEN NEW.peak_millis >= 0 THEN 1 ELSE 0 END), +(CASE WHEN NEW.peak_millis > 0 THEN NEW.peak_millis ELSE 0 END), +(CASE WHEN NEW.peak_millis >= 900 THEN 1 ELSE 0 END)) ON CONFLICT (day, agent, model, release, project, pruned) DO UPDATE SET calls = daily.calls + excluded.calls, input_tokens = daily.input_tokens + excluded.input_tokens, output_tokens = daily.output_tokens + excluded.output_tokens, cache_read_tokens = daily.cache_read_tokens + excluded.cache_read_tokens, cost_micros = daily.cost_micros + excluded.cost_micros, compactions = daily.compactions + excluded.compactions, fidelity_millis = daily.fidelity_millis + excluded.fidelity_millis, fidelities = daily.fidelities + excluded.fidelities, regrets = daily.regrets + excluded.regrets, cache_breaks = daily.cache_breaks + excluded.cache_breaks, cache_break_micros = daily.cache_break_micros + excluded.cache_break_micros, estimated_outputs = daily.estimated_outputs + excluded.estimated_outputs, sessions = daily.sessions + excluded.sessions, peaks = daily.peaks + excluded.peaks, peak_sum_millis = daily.peak_sum_millis + excluded.peak_sum_millis, red_sessions = daily.red_sessions + excluded.red_sessions; END
-- trigger session_days_changed
CREATE TRIGGER session_days_changed AFTER UPDATE ON session_days BEGIN INSERT INTO daily (day, agent, model, release, project, pruned, calls, input_tokens, output_tokens, cache_read_tokens, cost_micros, compactions, fidelity_millis, fidelities, regrets, cache_breaks, cache_break_micros, estimated_outputs, sessions, peaks, peak_sum_millis, red_sessions) VALUES (OLD.day, OLD.agent, OLD.model, OLD.release, OLD.project, 0, -(OLD.calls), -(OLD.input_tokens), -(OLD.output_tokens), -(OLD.cache_read_tokens), -(OLD.cost_micros), -(OLD.compactions), -(OLD.fidelity_millis), -(OLD.fidelities), -(OLD.regrets), -(OLD.cache_breaks), -(OLD.cache_break_micros), -(OLD.estimated_outputs), -(1), -(CASE WHEN OLD.peak_millis >= 0 THEN 1 ELSE 0 END), -(CASE WHEN OLD.peak_millis > 0 THEN OLD.peak_millis ELSE 0 END), -(CASE WHEN OLD.peak_millis >= 900 THEN 1 ELSE 0 END)) ON CONFLICT (day, agent, model, release, project, pruned) DO UPDATE SET calls = daily.calls + excluded.calls, input_tokens = daily.input_tokens + excluded.input_tokens, output_tokens = daily.output_tokens + excluded.output_tokens, cache_read_tokens = daily.cache_read_tokens + excluded.cache_read_tokens, cost_micros = daily.cost_micros + excluded.cost_micros, compactions = daily.compactions + excluded.compactions, fidelity_millis = daily.fidelity_millis + excluded.fidelity_millis, fidelities = daily.fidelities + excluded.fidelities, regrets = daily.regrets + excluded.regrets, cache_breaks = daily.cache_breaks + excluded.cache_breaks, cache_break_micros = daily.cache_break_micros + excluded.cache_break_micros, estimated_outputs = daily.estimated_outputs + excluded.estimated_outputs, sessions = daily.sessions + excluded.sessions, peaks = daily.peaks + excluded.peaks, peak_sum_millis = daily.peak_sum_millis + excluded.peak_sum_millis, red_sessions = daily.red_sessions + excluded.red_sessions; INSERT INTO daily (day, agent, model, release, project, pruned, calls, input_tokens, output_tokens, cache_read_tokens, cost_micros, compactions, fidelity_millis, fidelities, regrets, cache_breaks, cache_break_micros, estimated_outputs, sessions, peaks, peak_sum_millis, red_sessions) VALUES (NEW.day, NEW.agent, NEW.model, NEW.release, NEW.project, 0, +(NEW.calls), +(NEW.input_tokens), +(NEW.output_tokens), +(NEW.cache_read_tokens), +(NEW.cost_micros), +(NEW.compactions), +(NEW.fidelity_millis), +(NEW.fidelities), +(NEW.regrets), +(NEW.cache_breaks), +(NEW.cache_break_micros), +(NEW.estimated_outputs), +(1), +(CASE WHEN NEW.peak_millis >= 0 THEN 1 ELSE 0 END), +(CASE WHEN NEW.peak_millis > 0 THEN NEW.peak_millis ELSE 0 END), +(CASE WHEN NEW.peak_millis >= 900 THEN 1 ELSE 0 END)) ON CONFLICT (day, agent, model, release, project, pruned) DO UPDATE SET calls = daily.calls + excluded.calls, input_tokens = daily.input_tokens + excluded.input_tokens, output_tokens = daily.output_tokens + excluded.output_tokens, cache_read_tokens = daily.cache_read_tokens + excluded.cache_read_tokens, cost_micros = daily.cost_micros + excluded.cost_micros, compactions = daily.compactions + excluded.compactions, fidelity_millis = daily.fidelity_millis + excluded.fidelity_millis, fidelities = daily.fidelities + excluded.fidelities, regrets = daily.regrets + excluded.regrets, cache_breaks = daily.cache_breaks + excluded.cache_breaks, cache_break_micros = daily.cache_break_micros + excluded.cache_break_micros, estimated_outputs = daily.estimated_outputs + excluded.estimated_outputs, sessions = daily.sessions + excluded.sessions, peaks = daily.peaks + excluded.peaks, peak_sum_millis = daily.peak_sum_millis + excluded.peak_sum_millis, red_sessions = daily.red_sessions + excluded.red_sessions; END
-- trigger session_days_removed
CREATE TRIGGER session_days_removed AFTER DELETE ON session_days BEGIN INSERT INTO daily (day, agent, model, release, project, pruned, calls, input_tokens, output_tokens, cache_read_tokens, cost_micros, compactions, fidelity_millis, fidelities, regrets, cache_breaks, cache_break_micros, estimated_outputs, sessions, peaks, peak_sum_millis, red_sessions) VALUES (OLD.day, OLD.agent, OLD.model, OLD.release, OLD.project, 0, -(OLD.calls), -(OLD.input_tokens), -(OLD.output_tokens), -(OLD.cache_read_tokens), -(OLD.cost_micros), -(OLD.compactions), -(OLD.fidelity_millis), -(OLD.fidelities), -(OLD.regrets), -(OLD.cache_breaks), -(OLD.cache_break_micros), -(OLD.estimated_outputs), -(1), -(CASE WHEN OLD.peak_millis >= 0 THEN 1 ELSE 0 END), -(CASE WHEN OLD.peak_millis > 0 THEN OLD.peak_millis ELSE 0 END), -(CASE WHEN OLD.peak_millis >= 900 THEN 1 ELSE 0 END)) ON CONFLICT (day, agent, model, release, project, pruned) DO UPDATE SET calls = daily.calls + excluded.calls, input_tokens = daily.input_tokens + excluded.input_tokens, output_tokens = daily.output_tokens + excluded.output_tokens, cache_read_tokens = daily.cache_read_tokens + excluded.cache_read_tokens, cost_micros = daily.cost_micros + excluded.cost_micros, compactions = daily.compactions + excluded.compactions, fidelity_millis = daily.fidelity_millis + excluded.fidelity_millis, fidelities = daily.fidelities + excluded.fidelities, regrets = daily.regrets + excluded.regrets, cache_breaks = daily.cache_breaks + excluded.cache_breaks, cache_break_micros = daily.cache_break_micros + excluded.cache_break_micros, estimated_outputs = daily.estimated_outputs + excluded.estimated_outputs, sessions = daily.sessions + excluded.sessions, peaks = daily.peaks + excluded.peaks, peak_sum_millis = daily.peak_sum_millis + excluded.peak_sum_millis, red_sessions = daily.red_sessions + excluded.red_sessions; END
