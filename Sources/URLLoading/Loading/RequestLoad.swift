import Dispatch
import Foundation
import HTTPSemantics
import HTTPTransport

/// Loads one request for a `TaskLoader`. Confined to the session's event loop.
protocol RequestLoad: AnyObject, Sendable {
    func start()
    /// Ends the load; the task loader is not called any more.
    func stop()
    /// Allows `count` more bytes of content to be delivered, `Int.max` for all. None are delivered before the first
    /// call.
    func pull(_ count: Int)
    /// Suspends or resumes the load and its timeouts.
    func hold(_ isHeld: Bool)
    func setPriority(_ priority: Float)
}

/// Selects what loads a request: a `URLProtocol` of the program, or the built-in load for the scheme.
enum RequestLoadFactory {
    static func load(
        for request: URLRequest, body: TaskBody, loader: TaskLoader
    ) -> Result<any RequestLoad, URLError> {
        if let refusal = loader.core.refusal(of: request.url) { return .failure(refusal) }
        guard let url = request.url, let scheme = url.scheme?.lowercasedASCII else {
            return self.unsupported(request, "There is no URL, or it has no scheme.")
        }
        if let load = ProtocolLoad.load(for: request, loader: loader) { return .success(load) }
        switch scheme {
        case "http", "https": return .success(HTTPLoad(request, body: body, for: loader))
        case "data": return .success(DataURLLoad(url, for: loader))
        case "file": return .success(FileLoad(url, for: loader))
        case "ws", "wss": return self.unsupported(request, "WebSockets are opened by webSocketTask(with:).")
        case "ftp": return self.unsupported(request, "FTP is not supported.")
        default: return self.unsupported(request, "unsupported URL")
        }
    }

    private static func unsupported(_ request: URLRequest, _ text: String) -> Result<any RequestLoad, URLError> {
        .failure(LoadFailure.error(.unsupportedURL, url: request.url, text: text))
    }
}

/// The bytes that a load may still deliver.
struct PullCredit {
    /// `Int.max` is unlimited.
    private(set) var bytes = 0

    mutating func add(_ count: Int) {
        let (sum, overflow) = self.bytes.addingReportingOverflow(count)
        self.bytes = overflow ? .max : sum
    }

    mutating func spend(_ count: Int) {
        if self.bytes != .max { self.bytes = max(0, self.bytes - count) }
    }
}

/// Size of the pieces in which stored content and files are delivered.
private let pieceSize = 256 << 10

/// Delivers content that is already in memory, such as that of a cached response.
final class StoredLoad: RequestLoad, @unchecked Sendable {
    private let data: Data
    private let loader: TaskLoader
    private var position: Data.Index
    private var credit = PullCredit()
    private var isStopped = false
    private var isHeld = false
    private var isScheduled = false

    init(_ data: Data, for loader: TaskLoader) {
        self.data = data
        self.loader = loader
        self.position = data.startIndex
    }

    func start() {}
    func setPriority(_ priority: Float) {}

    func stop() { self.isStopped = true }

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        if !isHeld, self.credit.bytes > 0 { self.scheduleDelivery() }
    }

    func pull(_ count: Int) {
        self.credit.add(count)
        self.scheduleDelivery()
    }

    private func scheduleDelivery() {
        guard !self.isScheduled else { return }
        self.isScheduled = true
        self.loader.core.pool.executeLater { self.deliver() }
    }

    private func deliver() {
        self.isScheduled = false
        while self.credit.bytes > 0, !self.isStopped, !self.isHeld {
            let rest = self.data[self.position...]
            guard !rest.isEmpty else {
                self.isStopped = true
                return self.loader.finished()
            }
            let piece = Data(rest.prefix(min(self.credit.bytes, pieceSize)))
            self.position += piece.count
            self.credit.spend(piece.count)
            self.loader.received(piece, wireBytes: piece.count)
        }
    }
}

/// Loads a `data:` URL.
private final class DataURLLoad: RequestLoad, @unchecked Sendable {
    private let url: URL
    private let loader: TaskLoader

    init(_ url: URL, for loader: TaskLoader) {
        self.url = url
        self.loader = loader
    }

    func start() {
        self.loader.core.pool.executeLater {
            guard let decoded = DataURL(self.url.absoluteString) else {
                return self.loader.failed(
                    LoadFailure.error(.badURL, url: self.url, text: "The data URL cannot be read."))
            }
            let response = URLResponse(
                url: self.url, mimeType: decoded.mediaType, expectedContentLength: decoded.content.count,
                textEncodingName: decoded.charset)
            self.loader.recordLocalTransaction(response, bytes: decoded.content.count)
            self.loader.deliver(response, Data(decoded.content))
        }
    }

    func stop() {}
    func pull(_ count: Int) {}
    func hold(_ isHeld: Bool) {}
    func setPriority(_ priority: Float) {}
}

/// Loads a `file:` URL. The file is read off the loop.
private final class FileLoad: RequestLoad, @unchecked Sendable {
    private let url: URL
    private let loader: TaskLoader
    private var file: FileHandle?
    private var credit = PullCredit()
    private var isReading = false
    private var isHeld = false
    private var isStopped = false

    init(_ url: URL, for loader: TaskLoader) {
        self.url = url
        self.loader = loader
    }

    func start() {
        DiskQueue.shared.async {
            let result = Self.open(self.url)
            self.loader.core.pool.execute { self.opened(result) }
        }
    }

    private static func open(_ url: URL) -> Result<(UncheckedTransfer<FileHandle>, Int), URLError> {
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
        guard !self.isStopped else { return }
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
        self.isStopped = true
        guard let file = self.file.map({ UncheckedTransfer($0) }) else { return }
        self.file = nil
        // On the queue, because a read may be in progress there.
        DiskQueue.shared.async { try? file.value.close() }
    }

    func setPriority(_ priority: Float) {}

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        if !isHeld { self.read() }
    }

    func pull(_ count: Int) {
        self.credit.add(count)
        self.read()
    }

    private func read() {
        guard !self.isReading, !self.isHeld, !self.isStopped, self.credit.bytes > 0, let file = self.file else {
            return
        }
        self.isReading = true
        let transfer = UncheckedTransfer(file)
        let count = min(self.credit.bytes, pieceSize)
        DiskQueue.shared.async {
            let result = Result { try transfer.value.read(upToCount: count) ?? Data() }
            self.loader.core.pool.execute { self.readCompleted(result) }
        }
    }

    private func readCompleted(_ result: Result<Data, any Error>) {
        self.isReading = false
        guard !self.isStopped else { return }
        switch result {
        case .failure(let error):
            self.loader.failed(LoadFailure.error(.cannotOpenFile, url: self.url, cause: error))
        case .success(let data) where data.isEmpty: self.loader.finished()
        case .success(let data):
            self.credit.spend(data.count)
            self.loader.received(data, wireBytes: data.count)
            self.read()
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
        self.byExtension[pathExtension.lowercasedASCII] ?? "application/octet-stream"
    }
}

/// Reads and writes files of caches and `file:` URLs off the event loops, one operation at a time.
enum DiskQueue {
    static let shared = DispatchQueue(label: "URLLoading.disk")
}
