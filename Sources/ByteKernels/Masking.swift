/// XORs `bytes` in place with the masking key, from byte `phase` of the key on (RFC 6455 §5.3).
///
/// - Parameters:
///   - key: the four bytes of the key in little-endian order.
///   - phase: position in the key of the first byte of `bytes`; only its two lowest bits count.
/// - Returns: the phase for the next chunk of the same payload, 0 to 3.
package func applyMask(_ bytes: inout MutableRawSpan, key: UInt32, phase: Int) -> Int {
    let count = bytes.byteCount
    unsafe bytes.withUnsafeMutableBytes { buffer in
        guard let start = buffer.baseAddress else { return }
        unsafe exclusiveOr(from: start, to: start, count: count, key: rotated(key, phase: phase))
    }
    return (phase &+ count) & 3
}

/// Copies `source` into `target` at `offset` and masks the copy as `applyMask` does.
///
/// - Parameters:
///   - offset: of the first byte in `target`; traps if `source` does not fit.
///   - key: the four bytes of the key in little-endian order.
///   - phase: position in the key of the first byte of `source`; only its two lowest bits count.
/// - Returns: the phase for the next chunk of the same payload, 0 to 3.
package func copyMasked(
    _ source: RawSpan, into target: inout MutableRawSpan, at offset: Int, key: UInt32, phase: Int
) -> Int {
    let count = source.byteCount
    precondition(offset >= 0 && count <= target.byteCount - offset)
    unsafe target.withUnsafeMutableBytes { buffer in
        unsafe source.withUnsafeBytes { bytes in
            guard let from = bytes.baseAddress, let start = buffer.baseAddress else { return }
            unsafe exclusiveOr(from: from, to: start + offset, count: count, key: rotated(key, phase: phase))
        }
    }
    return (phase &+ count) & 3
}

/// The key rotated to start at byte `phase`. The masking shifts make phase 0 a no-op.
@inline(__always)
private func rotated(_ key: UInt32, phase: Int) -> UInt32 {
    let bits = UInt32(truncatingIfNeeded: phase & 3) &<< 3
    return (key &>> bits) | (key &<< (32 &- bits))
}

/// `source` and `target` must be equal or must not overlap: each block is read completely before it is written.
@inline(__always)
private func exclusiveOr(from source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, count: Int, key: UInt32) {
    let key = key.littleEndian
    let word = UInt64(key) &<< 32 | UInt64(key)
    var offset = 0
    if count >= 64 {
        let lane = SIMD4<UInt64>(repeating: word)
        let bulk = count & ~63
        while offset < bulk {
            let first = unsafe source.loadUnaligned(fromByteOffset: offset, as: SIMD4<UInt64>.self)
            let second = unsafe source.loadUnaligned(fromByteOffset: offset &+ 32, as: SIMD4<UInt64>.self)
            unsafe target.storeBytes(of: first ^ lane, toByteOffset: offset, as: SIMD4<UInt64>.self)
            unsafe target.storeBytes(of: second ^ lane, toByteOffset: offset &+ 32, as: SIMD4<UInt64>.self)
            offset &+= 64
        }
    }
    while offset &+ 8 <= count {
        let masked = unsafe source.loadUnaligned(fromByteOffset: offset, as: UInt64.self) ^ word
        unsafe target.storeBytes(of: masked, toByteOffset: offset, as: UInt64.self)
        offset &+= 8
    }
    if offset &+ 4 <= count {
        let masked = unsafe source.loadUnaligned(fromByteOffset: offset, as: UInt32.self) ^ key
        unsafe target.storeBytes(of: masked, toByteOffset: offset, as: UInt32.self)
        offset &+= 4
    }
    // Every block above is a multiple of four bytes, so the key starts at its first byte again.
    var rest = UInt32(littleEndian: key)
    while offset < count {
        let masked = unsafe source.load(fromByteOffset: offset, as: UInt8.self) ^ UInt8(truncatingIfNeeded: rest)
        unsafe target.storeBytes(of: masked, toByteOffset: offset, as: UInt8.self)
        rest &>>= 8
        offset &+= 1
    }
}
