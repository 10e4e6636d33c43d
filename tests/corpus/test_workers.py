"Tasks on a cluster: each call gets the results of its own tasks."

import pytest


@pytest.mark.slow
def test_results_are_those_of_this_call():
    "A new executor may live where an old one was; its tasks must not be taken for those of the old one."
    pytest.importorskip("distributed")
    from subword_nb.corpus.workers import DaskExecutor, local_client

    held, found = [], []
    with local_client(1, timeout=600) as client:
        for k in range(20):
            executor = DaskExecutor(client)
            # results that are still held are kept by the scheduler, under the names of their tasks
            held += [executor.share(k), executor.submit(abs, -k)]
            found.append((executor.fetch(held[-2]), executor.fetch(held[-1])))
            del executor
    assert found == [(k, k) for k in range(20)]
