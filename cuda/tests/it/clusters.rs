//! Clusters of blocks of launches.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::api::{Context, kernel, launch};
use crate::calls::{call, download, ok, upload};
use crate::launches::{BAD_CLUSTER, INVALID_VALUE, attribute, config};

/// Number of the attribute that has the shape of a cluster.
const CLUSTER: u32 = 4;

/// Kernels of which each block writes its rank, the blocks of its cluster times 10, and the number
/// of the block after it in its cluster times 100, from the shared memory of that.
fn clustered() -> String {
    let body = ".reg .b32 %r<9>; .reg .b64 %rd<3>; .shared .b32 word; mov.u32 %r1, %ctaid.x; st.shared.u32 [word], %r1; \
        barrier.cluster.arrive; barrier.cluster.wait; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctarank; \
        add.u32 %r4, %r2, 1; rem.u32 %r4, %r4, %r3; mapa.shared::cluster.u32 %r5, word, %r4; ld.shared::cluster.u32 %r6, [%r5]; \
        mad.lo.u32 %r6, %r6, 10, %r3; mad.lo.u32 %r6, %r6, 10, %r2; ld.param.u64 %rd1, [out]; \
        mad.wide.u32 %rd1, %r1, 4, %rd1; st.global.u32 [%rd1], %r6; barrier.cluster.arrive; barrier.cluster.wait; ret;";
    let kernel = |name, directives| format!(".visible .entry {name}(.param .u64 out) {directives} {{ {body} }}\n");
    [
        ".version 7.8\n.target sm_90\n.address_size 64\n",
        &kernel("free", ""),
        &kernel("pairs", ".reqnctapercluster 2"),
        &kernel("asks", ".explicitcluster"),
        &kernel("wide", ".reqnctapercluster 16"),
        &kernel("both", ".explicitcluster .reqnctapercluster 2"),
        &kernel("most", ".maxclusterrank 4"),
        "\0",
    ]
    .concat()
}

/// The words that the blocks of a grid of 16 write in clusters of this size.
fn ranks(size: i32) -> Vec<i32> {
    (0..16).map(|block| block % size + 10 * size + 100 * (block / size * size + (block + 1) % size)).collect()
}

#[test]
fn a_launch_gives_the_shape_of_clusters_that_a_kernel_lacks() {
    let _context = Context::new();
    let text = clustered();
    let [free, pairs, asks, wide, most] =
        ["free\0", "pairs\0", "asks\0", "wide\0", "most\0"].map(|name| kernel(&text, name));
    let out = upload(&[0; 16]);
    let launch_in = |function: u64, cluster: Option<[u32; 3]>| {
        let params = [(&raw const out).cast::<c_void>()];
        let attributes: Vec<_> = cluster.into_iter().map(|shape| attribute(CLUSTER, shape)).collect();
        let config = config(16, &attributes);
        call!(cuLaunchKernelEx(&raw const config, function, params.as_ptr(), null_mut::<c_void>()))
    };
    for (function, cluster, size) in [
        (free, None, 1),
        (free, Some([1; 3]), 1),
        (free, Some([4, 1, 1]), 4),
        (free, Some([2, 1, 1]), 2),
        (free, Some([8, 1, 1]), 8),
        (pairs, None, 2),
        (pairs, Some([2, 1, 1]), 2),
        (asks, Some([4, 1, 1]), 4),
        (most, Some([4, 1, 1]), 4),
    ] {
        assert_eq!(launch_in(function, cluster), 0, "{cluster:?}");
        assert_eq!(download(out, 16), ranks(size), "{cluster:?}");
    }
    for (function, cluster) in [
        (pairs, Some([4, 1, 1])),
        (pairs, Some([1; 3])),
        (free, Some([1, 2, 1])),
        (free, Some([3, 1, 1])),
        (free, Some([u32::MAX; 3])),
        (free, Some([16, 1, 1])),
        (wide, None),
        (asks, None),
        (most, Some([8, 1, 1])),
    ] {
        assert_eq!(launch_in(function, cluster), BAD_CLUSTER, "{cluster:?}");
    }
    assert_eq!(launch(asks, 1, 0, &mut [out]), BAD_CLUSTER);
    // Clusters of 16 blocks must be allowed.
    for (function, cluster) in [(free, Some([16, 1, 1])), (wide, None)] {
        ok!(cuFuncSetAttribute(function, 14, 1));
        assert_eq!(launch_in(function, cluster), 0);
        assert_eq!(download(out, 16), ranks(16));
    }
}

#[test]
fn a_program_may_set_the_clusters_of_a_kernel() {
    let _context = Context::new();
    let text = clustered();
    let [free, pairs, asks, both] = ["free\0", "pairs\0", "asks\0", "both\0"].map(|name| kernel(&text, name));
    let get = |function: u64, number: i32| {
        let mut value = -1;
        ok!(cuFuncGetAttribute(&raw mut value, number, function));
        value
    };
    assert_eq!([get(free, 10), get(pairs, 10), get(asks, 10), get(both, 10)], [0, 0, 1, 1]);
    assert_eq!([1, 2, 4].map(|width| call!(cuFuncSetAttribute(pairs, 11, width))), [800, 0, 800]);
    assert_eq!([get(free, 11), get(pairs, 11)], [0, 2]);
    let out = upload(&[0; 1]);
    ok!(cuFuncSetAttribute(free, 11, 1));
    assert_eq!(launch(free, 1, 0, &mut [out]), BAD_CLUSTER, "two extents are 0");
    ok!(cuFuncSetAttribute(free, 12, 1));
    ok!(cuFuncSetAttribute(free, 13, 1));
    assert_eq!((launch(free, 1, 0, &mut [out]), get(free, 13)), (0, 1));
    ok!(cuFuncSetAttribute(free, 11, 2));
    assert_eq!(launch(free, 1, 0, &mut [out]), BAD_CLUSTER, "a grid of one block");
    assert_eq!(call!(cuFuncSetAttribute(free, 11, -1)), INVALID_VALUE);
}

/// The operands of a node, `CUDA_KERNEL_NODE_PARAMS_v2`, have the list of parameters behind 40
/// bytes.
#[test]
fn a_node_keeps_its_clusters_when_its_operands_change() {
    let _context = Context::new();
    let free = kernel(&clustered(), "free\0");
    let (outs, attributes) = ([(); 3].map(|()| upload(&[0; 16])), [attribute(CLUSTER, [4, 1, 1])]);
    let mut captured = config(16, &attributes);
    let (mut stream, mut graph, mut node, mut count) = (0_u64, 0_u64, 0_u64, 1_usize);
    ok!(cuStreamCreate(&raw mut stream, 1_u32));
    ok!(cuStreamBeginCapture_v2(stream, 2_u32));
    captured.stream = stream;
    let params = outs.each_ref().map(|out| [std::ptr::from_ref(out).cast::<c_void>()]);
    ok!(cuLaunchKernelEx(&raw const captured, free, params[0].as_ptr(), null_mut::<c_void>()));
    ok!(cuStreamEndCapture(stream, &raw mut graph));
    ok!(cuGraphGetNodes(graph, &raw mut node, &raw mut count));
    let mut operands = [0_u64; 9];
    let mut exec = 0_u64;
    ok!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0_u64));
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuGraphKernelNodeGetParams_v2(node, operands.as_mut_ptr()));
    operands[5] = params[1].as_ptr().expose_provenance() as u64;
    ok!(cuGraphExecKernelNodeSetParams_v2(exec, node, operands.as_ptr()));
    ok!(cuGraphLaunch(exec, stream));
    operands[5] = params[2].as_ptr().expose_provenance() as u64;
    ok!(cuGraphKernelNodeSetParams_v2(node, operands.as_ptr()));
    ok!(cuGraphInstantiateWithFlags(&raw mut exec, graph, 0_u64));
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(outs.map(|out| download(out, 16)), [(); 3].map(|()| ranks(4)));
}
