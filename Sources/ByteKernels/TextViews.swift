extension String {
    /// The text that `bytes` stand for where nobody says how they are encoded: UTF-8 if they are valid as such, else
    /// ISO-8859-1, in which every byte is a character. Never fails and never replaces anything.
    package init(tolerant bytes: RawSpan) {
        self = unsafe bytes.withUnsafeBytes { buffer in
            if unsafe !buffer.contains(where: { $0 >= 0x80 }) {
                return unsafe String(unsafeUninitializedCapacity: buffer.count) { unsafe Self.fill($0, from: buffer) }
            }
            if let text = unsafe String(validating: buffer, as: UTF8.self) { return text }
            return unsafe String(String.UnicodeScalarView(buffer.lazy.map { Unicode.Scalar($0) }))
        }
    }

    private static func fill(_ text: UnsafeMutableBufferPointer<UInt8>, from bytes: UnsafeRawBufferPointer) -> Int {
        unsafe UnsafeMutableRawBufferPointer(text).copyMemory(from: bytes)
        return bytes.count
    }
}
