import Foundation
import HTTPTransport

/// What a task sends, and how it is sent again.
enum TaskBody {
    case none
    case data(Data)
    case file(URL)
    /// - Parameter first: what the program gave for the first time; `nil` asks for it.
    case stream(first: InputStream?)

    /// Of the request itself: no bytes are no body.
    init(_ request: URLRequest) {
        switch request.body {
        case .none: self = .none
        case .data(let data): self = data.isEmpty ? .none : .data(data)
        case .stream(let stream): self = .stream(first: stream)
        }
    }

    var isNone: Bool {
        if case .none = self { true } else { false }
    }

    /// In bytes; -1 where it is not known.
    /// - Parameter request: whose Content-Length may tell that of a stream.
    func length(for request: URLRequest?) -> Int64 {
        switch self {
        case .none: 0
        case .data(let data): Int64(data.count)
        case .file(let url): Self.size(of: url) ?? NSURLSessionTransferSizeUnknown
        case .stream:
            request?.value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) }
                ?? NSURLSessionTransferSizeUnknown
        }
    }

    private static func size(of url: URL) -> Int64? {
        // Of what a link leads to: that is what is sent.
        var facts = stat()
        return stat(url.path, &facts) == 0 ? Int64(facts.st_size) : nil
    }
}
