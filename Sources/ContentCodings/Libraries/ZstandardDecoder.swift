import CCodings

/// Decodes Zstandard (RFC 8878) with the system's libzstd. Frames with a window above 8 MiB are refused (RFC 9659 §3).
@safe
package final class ZstandardDecoder: CodingDecoder {
    private static let library = CodingLibrary(sluice_zstd_functions()) { unsafe sluice_zstd_open(&$0) }
    /// Base-2 logarithm of the largest window: 8 MiB.
    private static let windowLogMax: Int32 = 23

    /// Whether the library is installed (package `libzstd1`).
    package static var isAvailable: Bool { self.library != nil }

    private let zstd: sluice_zstd_functions
    private let state: UnsafeMutableRawPointer

    /// - Returns: `nil` without memory, or without the library.
    package init?() {
        guard let zstd = Self.library?.functions, let state = zstd.create() else { return nil }
        self.zstd = zstd
        unsafe self.state = state
        _ = unsafe zstd.set_parameter(state, Int32(SLUICE_ZSTD_WINDOW_LOG_MAX), Self.windowLogMax)
    }

    deinit { _ = unsafe self.zstd.destroy(self.state) }

    package func decode(
        _ input: RawSpan, consumed: inout Int, into output: inout MutableRawSpan, written: inout Int
    ) throws(CodingFailure) -> DecodingProgress {
        precondition(consumed >= 0 && consumed <= input.byteCount && written >= 0 && written <= output.byteCount)
        let result = unsafe input.withUnsafeBytes { input in
            unsafe output.withUnsafeMutableBytes { output in
                var source = unsafe sluice_zstd_input(bytes: input.baseAddress, size: input.count, position: consumed)
                var target = unsafe sluice_zstd_output(bytes: output.baseAddress, size: output.count, position: written)
                let result = unsafe self.zstd.decompress(self.state, &target, &source)
                consumed = unsafe source.position
                written = unsafe target.position
                return result
            }
        }
        guard self.zstd.is_error(result) == 0 else { throw self.failure(result) }
        if result == 0 { return .ended }
        return written == output.byteCount ? .outputFull : .needsInput
    }

    private func failure(_ result: Int) -> CodingFailure {
        if self.zstd.error_code(result) == Int32(SLUICE_ZSTD_OUT_OF_MEMORY) { return .outOfMemory }
        return .corrupt(
            reason: unsafe self.zstd.error_name(result).map { unsafe String(cString: $0) } ?? "code \(result)")
    }
}
