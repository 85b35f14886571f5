import COpenSSL

/// One connection's two ends towards OpenSSL: it reads straight from bytes that are lent for one call, and writes to
/// the shared output buffer. It never says end of input; only the owner knows what the transport's end means.
@safe
struct CiphertextChannel {
    /// The part of the lent bytes that OpenSSL has not read yet; empty between calls.
    var input = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    /// While closed, OpenSSL sees no input, whatever is there.
    var inputHeld = false
    var output: CiphertextBuffer

    /// The BIO method of all channels, made once; its BIOs carry a pointer to a channel that outlives them.
    nonisolated(unsafe) private static let method: OpaquePointer? = {
        guard let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "ciphertext channel") else {
            return nil
        }
        unsafe BIO_meth_set_read_ex(method, readChannel)
        unsafe BIO_meth_set_write_ex(method, writeChannel)
        unsafe BIO_meth_set_ctrl(method, controlChannel)
        return unsafe method
    }()

    static func makeBIO(for channel: UnsafeMutablePointer<CiphertextChannel>) -> OpaquePointer? {
        guard let method = unsafe Self.method, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, channel)
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }
}

private func channel(of bio: OpaquePointer?) -> UnsafeMutablePointer<CiphertextChannel>? {
    unsafe BIO_get_data(bio)?.assumingMemoryBound(to: CiphertextChannel.self)
}

private func readChannel(
    _ bio: OpaquePointer?, _ target: UnsafeMutablePointer<CChar>?, _ wanted: Int, _ read: UnsafeMutablePointer<Int>?
) -> Int32 {
    guard let channel = unsafe channel(of: bio), let target = unsafe target, let read = unsafe read else { return 0 }
    let input = unsafe channel.pointee.input
    let count = min(wanted, input.count)
    guard count > 0, unsafe !channel.pointee.inputHeld, let source = input.baseAddress else {
        unsafe sluice_bio_set_retry_read(bio)
        unsafe read.pointee = 0
        return 0
    }
    unsafe sluice_bio_clear_retry(bio)
    unsafe UnsafeMutableRawPointer(target).copyMemory(from: source, byteCount: count)
    unsafe channel.pointee.input = UnsafeRawBufferPointer(start: source + count, count: input.count - count)
    unsafe read.pointee = count
    return 1
}

private func writeChannel(
    _ bio: OpaquePointer?, _ source: UnsafePointer<CChar>?, _ count: Int, _ written: UnsafeMutablePointer<Int>?
) -> Int32 {
    guard let channel = unsafe channel(of: bio), let source = unsafe source else { return 0 }
    unsafe sluice_bio_clear_retry(bio)
    unsafe channel.pointee.output.append(UnsafeRawPointer(source), count: count)
    unsafe written?.pointee = count
    return 1
}

/// OpenSSL flushes after each flight and fails if that fails; everything else is a question that we have no answer to.
private func controlChannel(
    _ bio: OpaquePointer?, _ command: Int32, _ number: Int, _ pointer: UnsafeMutableRawPointer?
) -> Int {
    command == BIO_CTRL_FLUSH || command == BIO_CTRL_DUP ? 1 : 0
}
