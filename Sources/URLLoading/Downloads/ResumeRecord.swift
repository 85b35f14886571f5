import HTTPSemantics

/// Resume data as it is written.
struct ResumeRecord: Codable {
    static let version = 1

    var version = Self.version
    let originalRequest: StoredRequest
    let currentRequest: StoredRequest
    let entityTag: String?
    let lastModified: String?
    let bytesReceived: Int64
    let total: Int64?
    let file: String

    init(_ data: ResumeData, _ original: StoredRequest, _ current: StoredRequest) {
        self.originalRequest = original
        self.currentRequest = current
        switch data.validator {
        case .entityTag(let value): (self.entityTag, self.lastModified) = (value, nil)
        case .lastModified(let value): (self.entityTag, self.lastModified) = (nil, value)
        }
        self.bytesReceived = data.bytesReceived
        self.total = data.total
        self.file = data.file.text
    }

    var resumeValidator: ResumeValidator? {
        if let tag = self.entityTag { return Self.isFieldValue(tag) ? .entityTag(tag) : nil }
        guard let date = self.lastModified, Self.isFieldValue(date) else { return nil }
        return .lastModified(date)
    }

    /// It becomes the value of `If-Range`.
    private static func isFieldValue(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 1024 && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
    }
}
