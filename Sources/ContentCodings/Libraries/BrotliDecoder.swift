import CCodings

/// Decodes Brotli (RFC 7932) with the system's libbrotlidec. Its window takes at most 16 MiB, and memory for it is taken
/// as the output grows.
@safe
package final class BrotliDecoder: CodingDecoder {
    private static let library = CodingLibrary(sluice_brotli_functions()) { unsafe sluice_brotli_open(&$0) }

    /// Whether the library is installed (package `libbrotli1`).
    package static var isAvailable: Bool { self.library != nil }

    private let brotli: sluice_brotli_functions
    private let state: UnsafeMutableRawPointer

    /// - Returns: `nil` without memory, or without the library.
    package init?() {
        guard let brotli = Self.library?.functions, let state = brotli.create(nil, nil, nil) else { return nil }
        self.brotli = brotli
        unsafe self.state = state
    }

    deinit { unsafe self.brotli.destroy(self.state) }

    package func decode(
        _ input: RawSpan, consumed: inout Int, into output: inout MutableRawSpan, written: inout Int
    ) throws(CodingFailure) -> DecodingProgress {
        precondition(consumed >= 0 && consumed <= input.byteCount && written >= 0 && written <= output.byteCount)
        let result = unsafe input.withUnsafeBytes { input in
            unsafe output.withUnsafeMutableBytes { output in
                var (left, room) = (input.count - consumed, output.count - written)
                var next = unsafe input.baseAddress.map { unsafe $0.assumingMemoryBound(to: UInt8.self) + consumed }
                var target = unsafe output.baseAddress.map { unsafe $0.assumingMemoryBound(to: UInt8.self) + written }
                let result = unsafe self.brotli.decompress(self.state, &left, &next, &room, &target, nil)
                consumed = input.count - left
                written = output.count - room
                return result
            }
        }
        guard result != Int32(SLUICE_BROTLI_ERROR) else { throw self.failure }
        if result == Int32(SLUICE_BROTLI_END) { return .ended }
        return written == output.byteCount ? .outputFull : .needsInput
    }

    private var failure: CodingFailure {
        let code = unsafe self.brotli.error_code(self.state)
        if code <= sluice_brotli_first_allocation_error, code >= sluice_brotli_last_allocation_error {
            return .outOfMemory
        }
        let text = unsafe self.brotli.error_text(code).map { unsafe String(cString: $0) }
        return .corrupt(reason: text ?? "code \(code)")
    }
}
