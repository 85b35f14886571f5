import Dispatch
import Foundation
import HTTPSemantics
import HTTPTransport
import WireText

/// Loads one request for a `TaskLoader`. Confined to the session's executor.
protocol RequestLoad: AnyObject {
    func start()
    /// Ends the load; the task loader is not called any more.
    func stop()
    /// The loader's demand has grown, or its task was suspended or resumed. Content is delivered within that demand only;
    /// while the task is suspended, nothing is received.
    func demandChanged()
    func setPriority(_ priority: Float)
    /// Takes the connection out of HTTP in place of the content; `TaskLoader.detached` follows.
    /// - Returns: `false` if there is none, or content was read from it.
    func detachConnection() -> Bool
}

extension RequestLoad {
    func stop() {}
    func demandChanged() {}
    /// Without effect: only loads that wait for a connection have a priority.
    func setPriority(_ priority: Float) {}
    func detachConnection() -> Bool { false }
}

/// Selects what loads a request: a `URLProtocol` of the program, or the built-in load for the scheme.
enum RequestLoadFactory {
    /// - Parameter mayReadLocally: whether `file` and `data` are built-in schemes for this request.
    static func load(
        for request: URLRequest, body: TaskBody, loader: TaskLoader, mayReadLocally: Bool
    ) -> Result<any RequestLoad, URLError> {
        guard let url = request.url, let scheme = url.scheme?.loweredASCII else {
            return self.unsupported(request, "There is no URL, or it has no scheme.")
        }
        if let load = ProtocolLoad.load(for: request, body: body, loader: loader) { return .success(load) }
        switch scheme {
        case "http", "https": return .success(HTTPLoad(request, body: body, for: loader))
        case "data" where mayReadLocally: return .success(DataURLLoad(url, for: loader))
        case "file" where mayReadLocally: return .success(FileLoad(url, for: loader))
        case "ws", "wss": return self.unsupported(request, "WebSockets are opened by webSocketTask(with:).")
        case "ftp": return self.unsupported(request, "FTP is not supported.")
        default: return self.unsupported(request, "unsupported URL")
        }
    }

    private static func unsupported(_ request: URLRequest, _ text: String) -> Result<any RequestLoad, URLError> {
        .failure(LoadFailure.error(.unsupportedURL, url: request.url, text: text))
    }
}

/// The bytes of content that were pulled and not delivered.
struct PullCredit {
    /// `Int.max` is unlimited; negative if the last piece was longer than the demand.
    private(set) var bytes = 0

    mutating func add(_ count: Int) {
        let (sum, overflow) = self.bytes.addingReportingOverflow(count)
        self.bytes = overflow ? .max : sum
    }

    mutating func spend(_ count: Int) {
        if self.bytes != .max { self.bytes -= count }
    }
}

/// Size of the pieces in which stored content and files are delivered.
private let pieceSize = 256 << 10

/// Delivers content that is already in memory, such as that of a cached response.
final class StoredLoad: RequestLoad {
    private let data: Data
    private let loader: TaskLoader
    private var position: Data.Index
    private var isScheduled = false

    init(_ data: Data, for loader: TaskLoader) {
        self.data = data
        self.loader = loader
        self.position = data.startIndex
    }

    func start() {}

    func demandChanged() {
        guard !self.isScheduled else { return }
        self.isScheduled = true
        let loader = self.loader
        // In another turn: this may be a call from within `deliver`.
        loader.core.executor.executeLater { (loader.currentLoad as? StoredLoad)?.deliver() }
    }

    private func deliver() {
        self.isScheduled = false
        let loader = self.loader
        while loader.demand > 0, loader.currentLoad === self {
            let rest = self.data[self.position...]
            guard !rest.isEmpty else { return loader.finished() }
            let piece = Data(rest.prefix(min(loader.demand, pieceSize)))
            self.position += piece.count
            loader.received(piece, wireBytes: piece.count)
        }
    }
}

/// Loads a `data:` URL.
private final class DataURLLoad: RequestLoad {
    private let url: URL
    private let loader: TaskLoader

    init(_ url: URL, for loader: TaskLoader) {
        self.url = url
        self.loader = loader
    }

    func start() {
        self.loader.core.executor.executeLater { [loader, url] in
            guard let decoded = DataURL(url.absoluteString) else {
                return loader.failed(LoadFailure.error(.badURL, url: url, text: "The data URL cannot be read."))
            }
            let response = URLResponse(
                url: url, mimeType: decoded.mediaType, expectedContentLength: decoded.content.count,
                textEncodingName: decoded.charset)
            loader.recordLocalTransaction(response, bytes: decoded.content.count)
            loader.deliver(response, Data(decoded.content))
        }
    }
}

/// Loads a `file:` URL. The file is read off the loop.
private final class FileLoad: RequestLoad {
    private let url: URL
    private let loader: TaskLoader
    private var file: FileHandle?
    private var isReading = false

    init(_ url: URL, for loader: TaskLoader) {
        self.url = url
        self.loader = loader
    }

    func start() {
        DiskQueue.shared.async { [loader, url] in
            let result = Self.open(url)
            Self.onLoop(of: loader) { $0.opened(result) }
        }
    }

    /// Runs `work` on the session's executor, unless the load was stopped.
    private static func onLoop(of loader: TaskLoader, _ work: @escaping @Sendable (FileLoad) -> Void) {
        loader.core.executor.execute { if let load = loader.currentLoad as? FileLoad { work(load) } }
    }

    private static func open(_ url: URL) -> Result<(UncheckedTransfer<FileHandle>, Int), URLError> {
        // The path is one of this machine's (RFC 8089 §2).
        if let host = url.host(percentEncoded: false), !host.isEmpty, !host.matchesIgnoringCase("localhost") {
            return .failure(
                LoadFailure.error(.fileDoesNotExist, url: url, text: "The URL names a file of another host, \(host)."))
        }
        guard url.isFileURL, let attributes = try? FileManager.default.attributesOfItem(atPath: url.path) else {
            return .failure(LoadFailure.error(.fileDoesNotExist, url: url))
        }
        guard attributes[.type] as? FileAttributeType == .typeRegular else {
            return .failure(
                LoadFailure.error(.fileIsDirectory, url: url, text: "The URL does not name a regular file."))
        }
        do {
            let file = try FileHandle(forReadingFrom: url)
            return .success((UncheckedTransfer(file), (attributes[.size] as? NSNumber)?.intValue ?? -1))
        } catch {
            return .failure(LoadFailure.error(.noPermissionsToReadFile, url: url, cause: error))
        }
    }

    private func opened(_ result: Result<(UncheckedTransfer<FileHandle>, Int), URLError>) {
        switch result {
        case .failure(let error): self.loader.failed(error)
        case .success(let (file, size)):
            self.file = file.value
            let response = URLResponse(
                url: self.url, mimeType: FileType.mediaType(self.url.pathExtension), expectedContentLength: size,
                textEncodingName: nil)
            self.loader.recordLocalTransaction(response, bytes: size)
            self.loader.responseReceived(response)
        }
    }

    func stop() {
        guard let file = self.file.map({ UncheckedTransfer($0) }) else { return }
        self.file = nil
        // On the queue, because a read may be in progress there.
        DiskQueue.shared.async { try? file.value.close() }
    }

    func demandChanged() {
        guard !self.isReading, self.loader.demand > 0, let file = self.file else { return }
        self.isReading = true
        let transfer = UncheckedTransfer(file)
        let count = min(self.loader.demand, pieceSize)
        DiskQueue.shared.async { [loader] in
            let result = Result { try transfer.value.read(upToCount: count) ?? Data() }
            Self.onLoop(of: loader) { $0.readCompleted(result) }
        }
    }

    private func readCompleted(_ result: Result<Data, any Error>) {
        self.isReading = false
        switch result {
        case .failure(let error):
            self.loader.failed(LoadFailure.error(.cannotOpenFile, url: self.url, cause: error))
        case .success(let data) where data.isEmpty: self.loader.finished()
        case .success(let data):
            self.loader.received(data, wireBytes: data.count)
            self.demandChanged()
        }
    }
}

/// Media types of common file name extensions.
private enum FileType {
    private static let byExtension = [
        "txt": "text/plain", "html": "text/html", "htm": "text/html", "css": "text/css", "csv": "text/csv",
        "js": "text/javascript", "json": "application/json", "xml": "application/xml", "pdf": "application/pdf",
        "zip": "application/zip", "gz": "application/gzip", "png": "image/png", "jpg": "image/jpeg",
        "jpeg": "image/jpeg", "gif": "image/gif", "svg": "image/svg+xml", "webp": "image/webp", "mp3": "audio/mpeg",
        "mp4": "video/mp4", "wasm": "application/wasm",
    ]

    static func mediaType(_ pathExtension: String) -> String {
        self.byExtension[pathExtension.loweredASCII] ?? "application/octet-stream"
    }
}

/// Reads and writes files of caches and `file:` URLs off the loops, one operation at a time.
enum DiskQueue {
    static let shared = DispatchQueue(label: "URLLoading.disk")
}
