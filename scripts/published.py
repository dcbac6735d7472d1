"""Published runs (bench/data/published.json) as run and cluster files, and what `stretto simulate` says of them."""
import json, os, statistics, subprocess, tempfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
import math

HERE = os.path.dirname(os.path.abspath(__file__))
ROWS = os.path.join(HERE, '..', 'bench', 'data', 'published.json')
DEVICE = {'A100': 'a100-80g', 'A100-80GB': 'a100-80g', 'A100-40GB': 'a100-40g', 'H100-80GB': 'h100-sxm'}
STACK = dict(megatron_sc21='megatron-2021', vtrain_multi='megatron-deepspeed', vtrain_single='megatron-deepspeed',
             zero_bubble='megatron-2023', mosaic_fsdp='composer-fsdp')
SCHEDULE = {'no-pp': '1f1b', '1F1B': '1f1b', 'interleaved-1F1B': 'interleaved-1f1b', '1F1B-I': 'interleaved-1f1b',
            'interleaved-1F1B+scatter/gather': 'interleaved-1f1b', 'ZB-1p': 'zb-h1', 'ZB-2p': 'zb-h2',
            'ZB-2p (all-reduce sync optimizer)': 'zb-h2'}


def rows():
    with open(ROWS) as f:
        return json.load(f)


def precision(r):
    return 'fp8' if '8' in r['precision'] else 'bf16'


def stages(r, chunks):
    """Pieces per stage: embedding 1, a layer 2, head 1. Zero Bubble's first and last stage have a layer less."""
    n, layers = r['pp'] * chunks, r['layers']
    if r['group'] == 'zero_bubble':
        count = [(layers + 2) // n] * n
        count[0] -= 1
        count[-1] -= 1
    else:
        count = [layers // n + (i < layers % n) for i in range(n)]
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
    train = dict(dtype=f'"{precision(r)}"', batch=r['global_batch'], microbatches=r['n_micro'], clip=1.0)
    parallel = dict(pipe=r['pp'], data=r['dp'], tensor=r['tp'], zero=(r['zero'] or 0) if r['dp'] > 1 else 0,
                    schedule=f'"{schedule}"', recompute=f'"{r["recompute"] or "none"}"')
    if r['pp'] > 1:
        parallel['stages'] = json.dumps(stages(r, chunks))
        if schedule == 'interleaved-1f1b':
            parallel['chunks'] = chunks
    sections = (('model', model), ('train', train), ('parallel', parallel))
    return ''.join(f'[{name}]\n' + ''.join(f'{k} = {v}\n' for k, v in keys.items()) for name, keys in sections)


def cluster_toml(r, folder=None):
    """`folder`: where devices/ and stacks/ are that are used in place of the shipped ones."""
    def name(kind, of):
        return os.path.join(folder, kind, of + '.toml') if folder else of
    nic = 'nic = 12.5e9\n' if r['group'].startswith('vtrain') else ''  # 800 Gb/s a node
    return (f'device = "{name("devices", DEVICE[r["gpu"]])}"\nstack = "{name("stacks", STACK[r["group"]])}"\n'
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
    for group in STACK:
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
