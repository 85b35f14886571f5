import Deflate
import Foundation

/// Why the coding of a content could not be undone.
package enum ContentDecodingFailure: Error, Equatable, Sendable {
    /// The bytes are not what the coding allows; the reason is for a log.
    case corrupt(reason: String)
    /// The content ended before its coding did.
    case truncated
    case outOfMemory

    init(_ failure: InflateFailure) {
        switch failure {
        case .corrupt(let reason): self = .corrupt(reason: reason)
        case .dictionaryRequired: self = .corrupt(reason: "a preset dictionary that nobody agreed on")
        case .limitPassed: self = .corrupt(reason: "too long")
        case .outOfMemory: self = .outOfMemory
        }
    }

    /// A known coding that could not be undone is `cannotDecodeRawData`; `cannotDecodeContentData` is for unknown ones.
    package var code: URLError.Code { .cannotDecodeRawData }
}

extension ContentDecodingFailure: CustomStringConvertible {
    package var description: String {
        switch self {
        case .corrupt(let reason): "the coding of the content is corrupt: \(reason)"
        case .truncated: "the content ended in the middle of its coding"
        case .outOfMemory: "no memory to undo the coding of the content"
        }
    }
}
