/// What the connection sends.
extension EstablishedRecords {
    /// Encrypts `plaintext` into `output`, in as few records as it fits.
    /// - Returns: whether it worked; only memory may lack.
    package func write(_ plaintext: RawSpan, to output: CiphertextBuffer) -> Bool {
        self.overhead = 0
        var start = 0
        while start < plaintext.byteCount {
            let end = min(start + RecordSize.content, plaintext.byteCount)
            if self.owesKeyUpdate || self.writing.sequence >= self.recordsPerKey {
                guard self.updateWritingKey(output) else { return false }
            }
            let content = plaintext.extracting(start..<end)
            guard self.writing.seal(ContentType.applicationData.rawValue, content, to: output) else { return false }
            start = end
        }
        return true
    }

    /// Says close_notify: we send no more.
    package func writeCloseNotify(to output: CiphertextBuffer) -> Bool {
        self.write(.alert, [1, Alert.closeNotify], output)
    }

    /// Says why the connection is over.
    package func writeAlert(_ code: UInt8, to output: CiphertextBuffer) -> Bool {
        self.write(.alert, [2, code], output)
    }

    /// KeyUpdate is the last record under the old key, and asks for nothing in return (RFC 8446 §4.6.3).
    private func updateWritingKey(_ output: CiphertextBuffer) -> Bool {
        self.owesKeyUpdate = false
        return self.write(.handshake, [24, 0, 0, 1, 0], output) && self.writing.update()
    }

    private func write(_ type: ContentType, _ content: [UInt8], _ output: CiphertextBuffer) -> Bool {
        unsafe self.writing.seal(type.rawValue, content.span.bytes, to: output)
    }
}
