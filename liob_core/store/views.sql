-- The public interface. The order of the first columns is a promise; new columns go to the end.

CREATE OR REPLACE VIEW main.results AS
SELECT
    variants.run_id,
    variants.variant,
    variants.quant,
    variants.engine,
    variants.weights_sha256,
    variants.file_sha256,
    variants.bpw,
    variants.file_bytes,
    summary.n_samples,
    summary.n_ok,
    summary.ttft_ms_p50,
    summary.decode_tps,
    summary.decode_tps_ci_low,
    summary.decode_tps_ci_high,
    summary.prefill_tps,
    summary.timing_task,
    summary.n_blocks,
    summary.load_ms,
    summary.answer_tokens,
    summary.answer_s,
    summary.truncated_share,
    summary.peak_memory_bytes,
    summary.peak_rss_bytes,
    summary.peak_vram_bytes,
    summary.peak_system_ram_bytes,
    summary.cpu_peak_pct_mean,
    summary.pass_rate,
    summary.n_checked,
    -- beyond the promise
    variants.is_reference,
    variants.position,
    variants.model_name,
    variants.tensor_bytes,
    variants.n_params,
    variants.need_bytes,
    summary.n_failed,
    summary.n_contended,
    summary.decode_tps_cv,
    summary.prefill_tps_ci_low,
    summary.prefill_tps_ci_high,
    summary.prefill_tps_cv,
    summary.pp512_prefill_tps,
    summary.pp512_prefill_tps_ci_low,
    summary.pp512_prefill_tps_ci_high,
    summary.pp512_prefill_tps_cv,
    summary.pp512_n_blocks,
    summary.tg128_decode_tps,
    summary.tg128_decode_tps_ci_low,
    summary.tg128_decode_tps_ci_high,
    summary.tg128_decode_tps_cv,
    summary.tg128_n_blocks,
    summary.chat512_decode_tps,
    summary.chat512_decode_tps_ci_low,
    summary.chat512_decode_tps_ci_high,
    summary.chat512_decode_tps_cv,
    summary.chat512_n_blocks,
    summary.peak_anon_bytes,
    summary.pass_rate_ci_low,
    summary.pass_rate_ci_high,
    summary.n_passed,
    summary.n_unchecked,
    summary.unknown,
    summary.seed_pass_rate,
    summary.seed_pass_rate_ci_low,
    summary.seed_pass_rate_ci_high,
    summary.ceiling_tps,
    summary.roofline_share,
    summary.j_per_output_token,
    summary.j_per_output_token_ci_low,
    summary.j_per_output_token_ci_high,
    summary.net_j_per_output_token,
    summary.energy_scope,
    summary.energy_source,
    summary.energy_n_blocks
FROM raw.variants AS variants
LEFT JOIN raw.summary AS summary USING (run_id, variant)
-- what the user deleted is kept in raw, and in runs with its deleted_utc
WHERE variants.run_id NOT IN (SELECT run_id FROM raw.run_edits WHERE deleted_utc IS NOT NULL);

CREATE OR REPLACE VIEW main.samples AS
SELECT
    sample_id,
    run_id,
    variant,
    block,
    started_utc,
    seed,
    task,
    suite,
    category,
    prompt_id,
    repeat,
    outcome,
    reason,
    warmup,
    cold,
    prompt,
    response,
    prompt_tokens,
    cached_tokens,
    output_tokens,
    ttft_ms,
    tpot_ms,
    e2e_ms,
    prefill_tps,
    decode_tps,
    decode_tps_client,
    engine_prompt_ms,
    engine_eval_ms,
    cpu_other_share,
    check_result,
    -- beyond the promise
    shape,
    load_id,
    cell_id,
    cell_index,
    thinking,
    exact_text,
    prompt_sha256,
    check_reason,
    check_extracted,
    ttfot_ms,
    output_tps,
    overhead_ms,
    engine_load_ms,
    stop_type,
    cpu_mean_pct,
    cpu_peak_pct,
    cpu_steal_share,
    peak_rss_bytes,
    peak_system_ram_bytes,
    peak_vram_bytes,
    contended,
    n_readings,
    first_token_ns,
    first_text_ns,
    first_output_ns,
    last_token_ns,
    end_ns,
    first_event_tokens,
    eval_excludes_first_token,
    unknown,
    check_score,
    engine_total_ms,
    ttft_ms - engine_load_ms AS ttft_without_load_ms
FROM raw.samples;

CREATE OR REPLACE VIEW main.loads AS
SELECT
    load_id,
    run_id,
    variant,
    block,
    started_utc,
    asked,
    effective,
    weights_bytes,
    kv_bytes,
    compute_bytes,
    output_bytes,
    load_ms,
    host_rss_bytes,
    -- beyond the promise
    outcome,
    reason,
    engine_version,
    system_info,
    log_file,
    ended_utc,
    peak_rss_load_bytes,
    peak_rss_run_bytes,
    peak_anon_bytes,
    peak_memory_bytes,
    peak_vram_bytes,
    peak_vram_reason,
    sampler_cpu_share,
    try_cast(effective->>'gpu_layers' AS INTEGER) AS gpu_layers_used,
    try_cast(effective->>'gpu_share' AS DOUBLE) AS gpu_share,
    effective->>'gpu_share_reason' AS offload_reason
FROM raw.loads;

CREATE OR REPLACE VIEW main.paired_deltas AS
SELECT
    run_id, variant, reference, metric, kind, estimate, ci_low, ci_high, n, p_value, p_holm, verdict, reason,
    n_gained, n_lost, loss_bound, method
FROM raw.paired_deltas
WHERE run_id NOT IN (SELECT run_id FROM raw.run_edits WHERE deleted_utc IS NOT NULL);

-- One answer a prompt: that of the first block in which the suite ran.
CREATE OR REPLACE VIEW main.flips AS
WITH graded AS (
    SELECT samples.*, variants.is_reference
    FROM raw.samples AS samples JOIN raw.variants AS variants USING (run_id, variant)
    WHERE samples.task = 'suite' AND NOT samples.warmup AND samples.outcome <> 'cancelled'
    QUALIFY samples.block = min(samples.block) OVER (PARTITION BY samples.run_id)
        AND row_number() OVER (
            PARTITION BY samples.run_id, samples.variant, samples.prompt_id, samples.block
            ORDER BY samples.started_utc DESC
        ) = 1
)
SELECT
    mine.run_id,
    mine.variant,
    base.variant AS reference,
    mine.prompt_id,
    mine.category,
    if(mine.check_result = 'pass', 'gained', 'lost') AS direction,
    mine.sample_id,
    base.sample_id AS reference_sample_id
FROM graded AS mine JOIN graded AS base
    ON base.run_id = mine.run_id AND base.prompt_id = mine.prompt_id AND base.is_reference
WHERE NOT mine.is_reference
    AND mine.check_result IN ('pass', 'fail') AND base.check_result IN ('pass', 'fail')
    AND mine.check_result <> base.check_result
    AND mine.run_id NOT IN (SELECT run_id FROM raw.run_edits WHERE deleted_utc IS NOT NULL);

CREATE OR REPLACE VIEW main.seeds AS
SELECT
    run_id, variant, prompt_id, n_answers, n_checked, n_passed, pass_share, pass_share_ci_low,
    pass_share_ci_high
FROM raw.seeds
WHERE run_id NOT IN (SELECT run_id FROM raw.run_edits WHERE deleted_utc IS NOT NULL);

CREATE OR REPLACE VIEW main.runs AS
SELECT
    runs.run_id,
    coalesce(edits.title, runs.title) AS title,
    runs.state,
    runs.reason,
    runs.created_utc,
    runs.started_utc,
    runs.ended_utc,
    runs.engine,
    runs.engine_version,
    runs.reference,
    runs.tasks,
    runs.shapes,
    runs.suite,
    runs.suite_version,
    runs.suite_sha256,
    runs.n_suite_prompts,
    runs.max_tokens,
    runs.temperature,
    runs.seed,
    runs.n_blocks,
    runs.suite_repeats,
    runs.n_warmups,
    runs.prompt_mode,
    runs.machine_id,
    runs.liob_version,
    (SELECT count(*) FROM raw.variants AS variants WHERE variants.run_id = runs.run_id) AS n_variants,
    (SELECT count(*) FROM raw.samples AS samples WHERE samples.run_id = runs.run_id) AS n_samples,
    runs.sampling,
    runs.order_seed,
    runs.limits,
    runs.monitor_hz,
    runs.engine_url,
    runs.engine_options,
    runs.machine,
    runs.n_skipped_lines,
    runs.ingested_utc,
    runs.closeness,
    edits.note,
    edits.deleted_utc,
    runs.n_seeds,
    coalesce(runs.kind, 'liob') AS kind,
    runs.left_out,
    runs.read_bytes_per_s,
    runs.read_threads,
    runs.cache_bytes,
    runs.read_reason
FROM raw.runs AS runs LEFT JOIN raw.run_edits AS edits USING (run_id);

CREATE OR REPLACE VIEW main.variants AS
SELECT
    run_id, variant, position, is_reference, variant_key, quant, engine, weights_sha256, file_sha256,
    model_name, architecture, file_name, file_bytes, tensor_bytes, n_params, bpw, published_label,
    content_label, label_warning, fallback_tensors, fallback_warning, n_layers, n_ctx_train, n_experts,
    n_experts_used, has_chat_template, chat_template_sha256, imatrix, quantized_by, repo_url, base_model,
    n_ctx, threads, gpu_layers, kv_type_k, kv_type_v, load_settings, need_bytes, need_weights_bytes,
    need_kv_bytes, need_compute_bytes, need_reason, tensor_groups, hub_repo, hub_commit, engine_model,
    token_read_bytes
FROM raw.variants;

CREATE OR REPLACE VIEW main.prompts AS
SELECT
    run_id, prompt_id, position, suite, category, messages, check_kind, check_params, rubric,
    reference_answer, max_tokens, prompt, prompt_sha256, prompt_tokens, templated, template_sha256
FROM raw.prompts;

CREATE OR REPLACE VIEW main.machines AS
SELECT
    machine_id, cpu_name, cpu_arch, physical_cores, logical_cores, ram_bytes, swap_bytes, os_name,
    os_version, python_version, gpus, gpu_reason, power_source, cpu_governor, is_virtual, missing_sources
FROM raw.machines;

CREATE OR REPLACE VIEW main.readings AS
SELECT
    run_id, make_timestamp_ns(utc_ns) AS read_utc, utc_ns, rss_bytes, anon_bytes, swap_bytes,
    engine_cpu_pct, system_cpu_pct, other_cpu_share, steal_share, system_ram_bytes
FROM raw.readings;

CREATE OR REPLACE VIEW main.gpu_readings AS
SELECT
    run_id, make_timestamp_ns(utc_ns) AS read_utc, utc_ns, device, used_bytes, process_bytes,
    utilization_pct, power_w, energy_mj, temperature_c, sm_clock_mhz, mem_clock_mhz
FROM raw.gpu_readings;

CREATE OR REPLACE VIEW main.events AS
SELECT run_id, event_utc, event, detail, journal_offset
FROM raw.events;

CREATE OR REPLACE VIEW main.judgements AS
SELECT
    run_id,
    sample_id,
    variant,
    prompt_id,
    judge,
    state,
    score,
    reason,
    raw_reply,
    attempts,
    -- beyond the promise
    mode,
    result,
    preferred_first,
    preferred_second,
    raw_reply_second,
    reference_sample_id,
    length_ratio,
    lengths_differ,
    calibration_share,
    is_self,
    judged_utc,
    judge_key,
    earlier_replies,
    judgement_id
FROM raw.judgements;

CREATE OR REPLACE VIEW main.calibrations AS
SELECT
    run_id, judge, mode, item_id, item_kind, expected, got, is_right, state, raw_reply, attempts, judged_utc,
    judge_key, set_sha256, calibration_id
FROM raw.calibrations;

CREATE OR REPLACE VIEW main.closeness AS
SELECT
    fidelities.run_id,
    fidelities.variant,
    -- what was asked, where a variant failed before it had a figure
    coalesce(
        fidelities.reference, if(fidelities.ppl IS NULL, nullif(runs.reference, fidelities.variant), NULL)
    ) AS reference,
    coalesce(fidelities.text, runs.closeness->>'text_name') AS text,
    coalesce(fidelities.n_ctx, (runs.closeness->>'n_ctx')::BIGINT) AS n_ctx,
    fidelities.n_windows,
    fidelities.n_tokens,
    fidelities.window_choice,
    fidelities.ppl,
    fidelities.ppl_se,
    fidelities.ppl_se_iid,
    fidelities.ln_ratio,
    fidelities.ln_ratio_se,
    fidelities.ln_ratio_se_iid,
    fidelities.kld_mean,
    fidelities.kld_se,
    fidelities.kld_se_iid,
    fidelities.kld_median,
    fidelities.kld_p99,
    fidelities.kld_max,
    fidelities.same_top,
    fidelities.same_top_se,
    fidelities.same_top_se_iid,
    fidelities.delta_p_mean,
    fidelities.delta_p_rms,
    fidelities.build,
    fidelities.cpu_features,
    -- beyond the promise
    fidelities.ending,
    fidelities.reason,
    fidelities.broken,
    fidelities.ln_ratio_low,
    fidelities.ln_ratio_high,
    fidelities.ln_ratio_bound,
    fidelities.ln_ratio_p,
    fidelities.verdict,
    fidelities.kld_p90,
    fidelities.kld_p95,
    fidelities.kld_p999,
    fidelities.delta_p_se,
    fidelities.delta_p_se_iid,
    fidelities.prefill_tps,
    fidelities.text_sha256,
    fidelities.unknown
FROM raw.fidelities AS fidelities LEFT JOIN raw.runs AS runs USING (run_id)
WHERE fidelities.run_id NOT IN (SELECT run_id FROM raw.run_edits WHERE deleted_utc IS NOT NULL);

-- Net is what the work took beyond the model at rest, which is known only where both rests agree; a token's
-- energy comes from the shape that does nothing but write.
CREATE OR REPLACE VIEW main.energy AS
WITH windows AS (
    SELECT
        *, energy_j / nullif(window_s, 0) AS gross_w,
        (idle_before_w + idle_after_w) / 2 AS idle_w,
        if(shape = 'tg128', nullif(output_tokens, 0), NULL) AS written_tokens
    FROM raw.energy
), nets AS (
    SELECT
        *, CASE
            WHEN energy_j IS NULL THEN NULL
            WHEN idle_w IS NULL THEN 'the power at rest is not known'
            WHEN abs(idle_before_w - idle_after_w) > 0.1 * gross_w
                THEN 'the power at rest before and after differs by more than 10 % of the whole'
        END AS net_reason
    FROM windows
)
SELECT
    run_id,
    variant,
    block,
    shape,
    scope,
    source,
    window_s,
    n_requests,
    output_tokens,
    energy_j,
    gross_w,
    idle_before_w,
    idle_after_w,
    if(net_reason IS NULL, energy_j - idle_w * window_s, NULL) AS net_j,
    energy_j / nullif(n_requests, 0) AS j_per_request,
    energy_j / written_tokens AS j_per_output_token,
    written_tokens / nullif(energy_j, 0) AS tokens_per_j,
    reason,
    net_reason,
    contended,
    load_id,
    started_utc
FROM nets;
