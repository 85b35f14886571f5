import COpenSSL

/// OpenSSL's error queue of the current thread. It must be cleared before a call and read right after it, so that
/// errors of other calls are not mixed up.
enum ErrorQueue {
    /// Empties the queue; cheap if it is empty, as it usually is.
    static func clear() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
    }

    /// Whether the oldest error says that the input is not a TLS record.
    static var indicatesNotTLS: Bool { sluice_error_is_no_tls() == 1 }

    /// Removes all errors from the queue and returns their texts, the oldest first; if there is one of the system, its
    /// text alone, since the others only follow from it.
    static func takeReasons() -> [String] {
        var reasons: [String] = []
        var systemError: String?
        while true {
            var data: UnsafePointer<CChar>?
            var flags: Int32 = 0
            let code = unsafe ERR_get_error_all(nil, nil, nil, &data, &flags)
            guard code != 0 else { return systemError.map { [$0] } ?? reasons }
            if systemError == nil {
                systemError = unsafe sluice_system_error_text(code).map { unsafe String(cString: $0) }
            }
            var text = Self.text(of: code)
            if flags & ERR_TXT_STRING != 0, let data = unsafe data, unsafe data.pointee != 0 {
                unsafe text += " (\(String(cString: data)))"
            }
            if reasons.last != text { reasons.append(text) }
        }
    }

    /// Creates a failure with `what` and the errors of the queue, and empties the queue.
    static func failure(_ kind: TLSFailure.Kind, _ what: String, file: String? = nil) -> TLSFailure {
        TLSFailure(kind, reasons: [what] + Self.takeReasons(), file: file)
    }

    private static func text(of code: UInt) -> String {
        if let reason = unsafe ERR_reason_error_string(code) { return unsafe String(cString: reason) }
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let start = buffer.baseAddress else { return "error \(code)" }
            unsafe ERR_error_string_n(code, start, buffer.count)
            return unsafe String(cString: start)
        }
    }
}
