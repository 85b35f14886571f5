import Foundation

/// The body of a task's request.
enum TaskBody {
    case none
    case data(Data)
    case file(URL)
    indirect case filePart(URL, FilePart)
    /// - Parameter first: the stream to send first; `nil` asks the delegate for one.
    case stream(first: InputStream?)
    /// The rest of a streamed body, for which the delegate is asked.
    case streamRest(from: Int64)

    /// The body of the request itself; empty data count as no body.
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

    /// Whether only the program may know its length.
    var isStream: Bool {
        switch self {
        case .stream, .streamRest: true
        case .none, .data, .file, .filePart: false
        }
    }

    /// In bytes; -1 if unknown.
    /// - Parameter request: its Content-Length is the length of a stream.
    func length(for request: URLRequest?) -> Int64 {
        switch self {
        case .none: 0
        case .data(let data): Int64(data.count)
        case .file(let url): Self.size(of: url) ?? NSURLSessionTransferSizeUnknown
        case .filePart(_, let part): part.length
        case .streamRest: NSURLSessionTransferSizeUnknown
        case .stream:
            request?.value(forHTTPHeaderField: "Content-Length").flatMap { Int64($0) }
                ?? NSURLSessionTransferSizeUnknown
        }
    }

    private static func size(of url: URL) -> Int64? {
        // Follows symbolic links, as reading the file does.
        var status = stat()
        return stat(url.path, &status) == 0 ? Int64(status.st_size) : nil
    }
}
