"""Published runs as run and cluster files, and what `stretto simulate` says of them: bench/data/published.json, to which
numbers are fitted, and bench/data/throughput.tsv, pages of other software on newer devices, to which they are held."""
import csv, json, os, statistics, subprocess, tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
import math

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = os.path.join(HERE, '..', 'bench', 'data', 'published.json')
OTHERS = os.path.join(HERE, '..', 'bench', 'data', 'throughput.tsv')
DEVICE = {'A100': 'a100-80g', 'A100-80GB': 'a100-80g', 'A100-40GB': 'a100-40g', 'H100-80GB': 'h100-sxm',
          'H100-96GB-HBM2e': 'h100-500w', 'H200-141GB': 'h200-sxm', 'B200': 'b200', 'GB200': 'gb200', 'GB300': 'gb300',
          'MI300X': 'mi300x'}
STACK = dict(megatron_sc21='megatron-2021', vtrain_multi='megatron-deepspeed', vtrain_single='megatron-deepspeed',
             zero_bubble='megatron-2023', mosaic_fsdp='composer-fsdp')
SCHEDULE = {'no-pp': '1f1b', '1F1B': '1f1b', 'interleaved-1F1B': 'interleaved-1f1b', '1F1B-I': 'interleaved-1f1b',
            'interleaved-1F1B+scatter/gather': 'interleaved-1f1b', 'ZB-1p': 'zb-h1', 'ZB-2p': 'zb-h2',
            'ZB-2p (all-reduce sync optimizer)': 'zb-h2'}

# Of throughput.tsv: layers, width, heads, key/value heads, feed-forward width, vocabulary, and what else is not llama's.
# A name with a number after a colon has as many layers.
# Where tokens over capacity are dropped (nemo-25.09-experts, dgxc-24-grok), slots are as many as rows without drops.
EXPERTS = {'family': '"mixtral"', 'head_dim': 128, 'experts': 128, 'top_k': 8}
MODELS = {
    'llama2-7b': (32, 4096, 32, 32, 11008, 32000, {}), 'llama2-13b': (40, 5120, 40, 40, 13824, 32000, {}),
    'llama2-70b': (80, 8192, 64, 8, 28672, 32000, {}), 'llama3-8b': (32, 4096, 32, 8, 14336, 128256, {}),
    'llama3-70b': (80, 8192, 64, 8, 28672, 128256, {}), 'llama3-405b': (126, 16384, 128, 8, 53248, 128256, {}),
    'llama3-405b-50k': (126, 16384, 128, 8, 53248, 50257, {}),  # with GPT-2's tokenizer in place of its own
    'qwen2.5-7b': (28, 3584, 28, 4, 18944, 152064, {}),
    'gpt3-5b': (24, 4096, 32, 32, 16384, 51200, {'family': '"gpt2"'}),
    'gpt3-20b': (44, 6144, 48, 48, 24576, 51200, {'family': '"gpt2"'}),
    'gpt3-175b': (96, 12288, 96, 96, 49152, 51200, {'family': '"gpt2"'}),
    'gpt-22b': (48, 6144, 64, 64, 24576, 51200, {'family': '"gpt2"'}),
    'gpt-530b': (105, 20480, 128, 128, 81920, 51200, {'family': '"gpt2"'}),
    'gpt-1t': (128, 25600, 160, 160, 102400, 51200, {'family': '"gpt2"'}),
    'nemotron-8b': (32, 4096, 32, 32, 16384, 256000, {'gated': 'false'}),
    'nemotron-15b': (32, 6144, 48, 8, 24576, 256000, {'gated': 'false'}),
    'nemotron-22b': (40, 6144, 48, 48, 24576, 256000, {'gated': 'false'}),
    'nemotron-340b': (96, 18432, 96, 8, 73728, 256000, {'gated': 'false'}),
    'grok1': (64, 6144, 48, 8, 32768, 128256, EXPERTS | {'experts': 8, 'top_k': 2}),
    'qwen3-30b': (48, 2048, 32, 4, 768, 151936, EXPERTS), 'qwen3-235b': (94, 4096, 64, 4, 1536, 151936, EXPERTS)}
# Which stack a source of throughput.tsv is. Read in: NVIDIA/NeMo docs/source/performance/performance_summary.md (24.07; long
# contexts: 24.03), NVIDIA-NeMo/Megatron-Bridge docs/performance-summary.md and its archive (25.11, 26.02), pytorch/torchtitan
# benchmarks/llama3_h100_202412_torchtitan.md, benchmarks/llama3_8b_h200_2025-06_torchtitan.md and docs/performance.md (A100),
# Llama Team 2024, The Llama 3 Herd of Models, table 4 (tokens from its TFLOP/s; chunks are not printed there). torchtitan
# cuts a batch into as many microbatches as it has stages on a rank's pipeline, unless told otherwise (pipelining_utils.py).
# Predicted before anything was fitted or chosen with them in sight: Korthikanti et al. 2022, tables 3 and 5, as recalled,
# checked against its MFU (with full recompute there is no sequence parallelism); Smith et al. 2022, Megatron-Turing NLG 530B,
# as cli99/llm-analysis examples/megatron-turing-nlg quotes it; Megatron-Bridge's archive of 25.09 (no precision printed: fp8)
# and rows of its 26.02 that were not in this table; torchtitan docs/performance.md, 405B on 128 ranks.
# Likewise NVIDIA/dgxc-benchmarking, of several commits: llama3.1/README_405b.md, README_70b.md, README_8b.md (24.09),
# nemotron/README_15b.md (24.12), README_340b.md (24.11), nemo_megatron/README_175b.md, grok1/README_314b.md with
# grok1_314b.yaml (dgxc-24-grok), llama3.1/README.md, nemotron/README.md and grok1/README.md (dgxc-25), maxtext/README_70b.md
# and that of Llama 3 with configure.sh, paxml/README_5b.md and README_175b.md with paxml_mod_configs.py; JAX-Toolbox
# rosetta/projects/pax/README.md with google/paxml configs.py (pax-a100); docs.nvidia.com, NeMo Framework user guide,
# performance summary of 25.04 and 25.07 (their first rows, all of GB200); DmitriiNikolaevAtAmd/tprimat PEAK_THROUGHPUT_GUIDE.md
# with AMD-AGI/Primus examples/megatron/configs/MI300X (batch times context over the step's time is what is printed).
# MaxText's save_qkv_proj and Pax' SAVE_QKV_OUT_PROJ are "layer" here, SAVE_DOT_ONLY is "selective".
SOURCES = {'nemo-24.07': 'nemo', 'nemo-24.03-long': 'nemo', 'nemo-25.11': 'nemo', 'nemo-26.02': 'nemo',
           'torchtitan-2024': 'torchtitan', 'torchtitan-a100': 'torchtitan', 'torchtitan-h200': 'torchtitan-2025',
           'llama3-paper': 'nemo', 'korthikanti-2022': 'megatron-2022', 'korthikanti-2022-full': 'megatron-2022',
           'mt-nlg': 'megatron-deepspeed', 'nemo-25.09': 'nemo', 'nemo-25.09-experts': 'nemo',
           'nemo-26.02-more': 'nemo', 'torchtitan-405b': 'torchtitan', 'dgxc-24.09-405b': 'nemo', 'dgxc-24.09-70b': 'nemo',
           'dgxc-24.09-8b': 'nemo', 'dgxc-24.12-15b': 'nemo', 'dgxc-24.11-340b': 'nemo', 'dgxc-24.12-175b': 'nemo',
           'dgxc-25': 'nemo', 'dgxc-24-grok': 'nemo', 'dgxc-25-grok': 'nemo', 'maxtext-llama2': 'jax',
           'maxtext-llama3': 'jax', 'pax-h100': 'jax', 'pax-a100': 'jax', 'nemo-25.04': 'nemo', 'nemo-25.07': 'nemo',
           'primus-mi300x': 'nemo'}
NO_SEQUENCE = ('korthikanti-2022-full', 'mt-nlg')  # tensor ranks hold what is between products alike


def rows():
    with open(ROWS) as f:
        return json.load(f)


def other_rows():
    """throughput.tsv as rows of published.json."""
    def row(r):
        n = {k: int(v) for k, v in r.items() if v.isdigit()}
        name, _, only = r['model'].partition(':')
        layers, hidden, heads, kv, ff, vocab, more = MODELS[name]
        dp = n['gpus'] // (n['tensor'] * n['pipe'] * n['context_ranks'])
        return dict(id=' '.join(r.values()), group=r['source'], model=r['model'], gpu=r['gpu'], gpus=n['gpus'], precision=r['precision'],
                    layers=int(only or layers), hidden=hidden, heads=heads, kv_heads=kv, ff=ff, vocab=vocab, more=more, seq=n['context'],
                    gpus_per_node=72 if r['gpu'].startswith('GB') else 8, tp=n['tensor'], pp=n['pipe'], dp=dp, cp=n['context_ranks'],
                    ep=n['expert'], vpp=n['chunks'], zero=n['zero'], replicas=n['replicas'],
                    global_batch=n['batch'],
                    seq_parallel=n['tensor'] > 1 and r['source'] not in NO_SEQUENCE,
                    n_micro=n['batch'] // (dp * n['microbatch']), schedule='interleaved-1F1B' if n['chunks'] > 1 else '1F1B',
                    recompute=r['recompute'], mem_gb=float(r['memory_gib']) * 1.0737 if r['memory_gib'] else None,
                    iter_time_s=n['batch'] * n['context'] / (float(r['tokens_per_second']) * n['gpus']))
    with open(OTHERS) as f:
        return [row(r) for r in csv.DictReader(f, delimiter='\t')]


def precision(r):
    return 'fp4' if 'fp4' in r['precision'] else 'fp8' if '8' in r['precision'] else 'bf16'


def stages(r, chunks):
    """Pieces per stage: embedding 1, a layer 2, head 1. Zero Bubble's first and last stage have a layer less."""
    n, layers = r['pp'] * chunks, r['layers']
    if r['group'] == 'zero_bubble':
        count = [(layers + 2) // n] * n
        count[0] -= 1
        count[-1] -= 1
    else:
        count = [layers // n + (i < layers % n) for i in range(n)]
        if min(count) == 0:
            return None  # compile chooses
    pieces = [2 * c for c in count]
    pieces[0] += 1
    pieces[-1] += 1
    return pieces


def run_toml(r):
    schedule, chunks = SCHEDULE[r['schedule']], r['vpp'] or 1
    if schedule == 'interleaved-1f1b' and chunks == 1:
        schedule = '1f1b'
    model = dict(family='"gpt2"', layers=r['layers'], width=r['hidden'], heads=r['heads'], context=r['seq'],
                 vocab=r['vocab'] or 50304, pad_vocab=128 * r['tp'], ff=r['ff'] or 4 * r['hidden'])
    if r['group'] == 'zero_bubble':
        model['tied'] = 'false'
    if 'more' in r:
        model |= dict(family='"llama"') | r['more']
        if model['family'] != '"gpt2"':
            model['kv_heads'] = r['kv_heads']
    train = dict(dtype=f'"{precision(r)}"', batch=r['global_batch'], microbatches=r['n_micro'], clip=1.0)
    parallel = dict(pipe=r['pp'], data=r['dp'], tensor=r['tp'], zero=(r['zero'] or 0) if r['dp'] > 1 else 0,
                    schedule=f'"{schedule}"', recompute=f'"{r["recompute"] or "none"}"')
    sequence = r.get('seq_parallel') and r['tp'] > 1
    parallel |= dict(context=r.get('cp') or 1, expert=r.get('ep') or 1, sequence='true' if sequence else 'false')
    parallel['data'] //= parallel['expert']
    if parallel['expert'] > 1:
        parallel['expert_rows'] = '"exchange"'  # what alltoall dispatchers do
    if r.get('replicas', 1) > 1:
        parallel['replicas'] = r['replicas']
        parallel['data'] //= r['replicas']
    if parallel['data'] == 1:
        parallel['zero'] = 0
    if r['pp'] > 1:
        if pieces := stages(r, chunks):
            parallel['stages'] = json.dumps(pieces)
        if schedule == 'interleaved-1f1b':
            parallel['chunks'] = chunks
    sections = (('model', model), ('train', train), ('parallel', parallel))
    return ''.join(f'[{name}]\n' + ''.join(f'{k} = {v}\n' for k, v in keys.items()) for name, keys in sections)


def cluster_toml(r, folder=None):
    """`folder`: where devices/ and stacks/ are that are used in place of the shipped ones."""
    def name(kind, of):
        return os.path.join(folder, kind, of + '.toml') if folder else of
    nic = 'nic = 12.5e9\n' if r['group'].startswith('vtrain') else ''  # 800 Gb/s a node
    stack = STACK.get(r['group']) or SOURCES[r['group']]
    return (f'device = "{name("devices", DEVICE[r["gpu"]])}"\nstack = "{name("stacks", stack)}"\n'
            f'ranks_per_node = {r["gpus_per_node"]}\n{nic}')


def simulate(executable, some, folder=None):
    """Per row a dictionary of columns, or None where it is refused."""
    def one(r):
        with tempfile.TemporaryDirectory() as d:
            with open(d + '/r.toml', 'w') as f:
                f.write(run_toml(r))
            with open(d + '/c.toml', 'w') as f:
                f.write(cluster_toml(r, folder))
            p = subprocess.run([executable, 'simulate', d + '/r.toml', '--cluster', d + '/c.toml', '--plain'],
                               capture_output=True, text=True)
        if p.returncode:
            print(f'refused: {r["id"]}: {p.stderr.strip()}')
            return None
        header, values = (line.split('\t') for line in p.stdout.strip().split('\n'))
        return {k: v if k == 'limit' else float(v) for k, v in zip(header, values)}
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(one, some))


def anchors(some):
    """One row per model of a source and device: the smallest. Their factor is what "anchored" corrects with."""
    best = {}
    for i, r in enumerate(some):
        key = (r['group'], r['gpu'], precision(r), r['model'].split(' (')[0])
        if key not in best or (r['gpus'], r['id']) < (some[best[key]]['gpus'], some[best[key]]['id']):
            best[key] = i
    return best


def kendall(pairs):
    s = [(pairs[i][0] - pairs[j][0]) * (pairs[i][1] - pairs[j][1]) for i in range(len(pairs)) for j in range(i)]
    return (sum(a > 0 for a in s) - sum(a < 0 for a in s)) / max(1, sum(a != 0 for a in s))


def errors(some, seconds, memory=None):
    """Per source: rows, cold and anchored error, rank correlation, regret and error of memory."""
    first, factor, table = anchors(some), defaultdict(list), {}
    for key, i in first.items():
        factor[key[:3]].append(math.log(seconds[i] / some[i]['iter_time_s']))
    for group in (*STACK, *SOURCES):
        mine = [i for i, r in enumerate(some) if r['group'] == group]
        if not mine:
            continue
        cold = [abs(seconds[i] / some[i]['iter_time_s'] - 1) for i in mine]
        held = [i for i in mine if i not in first.values()]
        one = [abs(seconds[i] / some[i]['iter_time_s'] /
                   math.exp(statistics.median(factor[group, some[i]['gpu'], precision(some[i])])) - 1) for i in held]
        families = defaultdict(list)
        for i in mine:
            r = some[i]
            families[r['model'], r['gpus'], r['global_batch'], r['seq'], r['vocab'], precision(r)].append(
                (seconds[i], r['iter_time_s']))
        families = [f for f in families.values() if len(f) >= 3]
        of_memory = [abs(memory[i] / 1e9 / some[i]['mem_gb'] - 1) for i in mine if some[i]['mem_gb']] if memory else []
        table[group] = dict(
            rows=len(mine), cold=statistics.mean(cold), anchored=statistics.mean(one) if one else None,
            tau=statistics.mean(map(kendall, families)) if families else None,
            regret=statistics.mean(min(f)[1] / min(m for _, m in f) - 1 for f in families) if families else None,
            memory=statistics.mean(of_memory) if of_memory else None)
    return table


def print_errors(table):
    print('| source | rows | cold | anchored | tau | regret | memory |\n|---|---:|---:|---:|---:|---:|---:|')
    for group, t in table.items():
        cells = ['-' if t[k] is None else f'{t[k]:.2f}' if k == 'tau' else f'{100 * t[k]:.1f}%'
                 for k in ('cold', 'anchored', 'tau', 'regret', 'memory')]
        print(f'| {group} | {t["rows"]} | ' + ' | '.join(cells) + ' |')
