import Dispatch
import Foundation
import HTTPSemantics
import HTTPTransport

/// Loads one request for a transfer. Confined to the session's event loop, on which it also tells the transfer.
protocol RequestLoad: AnyObject, Sendable {
    func start()
    /// Ends the load; the transfer hears nothing more of it.
    func stop()
    /// So many more bytes of content are wanted; `Int.max` for all. Nothing is told before it is called.
    func pull(_ count: Int)
    /// While held, nothing moves and no clock runs.
    func hold(_ isHeld: Bool)
    func setPriority(_ priority: Float)
}

/// Who loads a request: a protocol of the program, or what is built in for its scheme.
enum RequestLoadFactory {
    static func load(
        for request: URLRequest, body: TaskBody, transfer: TaskLoader
    ) -> Result<any RequestLoad, URLError> {
        if let refusal = transfer.core.refusal(of: request.url) { return .failure(refusal) }
        guard let url = request.url, let scheme = url.scheme?.withLoweredLetters else {
            return self.refusal(.unsupportedURL, request, "There is no URL, or it has no scheme.")
        }
        if let loader = ProtocolLoad.loader(for: request, transfer: transfer) { return .success(loader) }
        switch scheme {
        case "http", "https": return .success(HTTPLoad(request, body: body, for: transfer))
        case "data": return .success(DataURLLoad(url, for: transfer))
        case "file": return .success(FileLoad(url, for: transfer))
        case "ws", "wss":
            return self.refusal(.unsupportedURL, request, "WebSockets are opened by webSocketTask(with:).")
        case "ftp": return self.refusal(.unsupportedURL, request, "FTP is not spoken here.")
        default: return self.refusal(.unsupportedURL, request, "unsupported URL")
        }
    }

    private static func refusal(
        _ code: URLError.Code, _ request: URLRequest, _ text: String
    ) -> Result<any RequestLoad, URLError> {
        .failure(LoadFailure.error(code, url: request.url, text: text))
    }
}

/// Loads a `data:` URL: its content is in the address.
final class DataURLLoad: RequestLoad, @unchecked Sendable {
    private let url: URL
    private let loader: TaskLoader

    init(_ url: URL, for transfer: TaskLoader) {
        self.url = url
        self.loader = transfer
    }

    func start() {
        self.loader.core.pool.executeLater {
            guard let content = DataURL(self.url.absoluteString) else {
                return self.loader.failed(
                    LoadFailure.error(.badURL, url: self.url, text: "The data URL cannot be read."))
            }
            let response = URLResponse(
                url: self.url, mimeType: content.mediaType, expectedContentLength: content.content.count,
                textEncodingName: content.charset)
            self.loader.recordLocalTransaction(response, bytes: content.content.count)
            self.loader.deliver(response, Data(content.content))
        }
    }

    func stop() {}
    func pull(_ count: Int) {}
    func hold(_ isHeld: Bool) {}
    func setPriority(_ priority: Float) {}
}

/// Loads a `file:` URL, as it is pulled; the disk is read off the loop.
final class FileLoad: RequestLoad, @unchecked Sendable {
    private static let pieceSize = 256 << 10

    private let url: URL
    private let loader: TaskLoader
    private var file: FileHandle?
    private var credit = 0
    private var isReading = false
    private var isHeld = false
    private var isStopped = false

    init(_ url: URL, for transfer: TaskLoader) {
        self.url = url
        self.loader = transfer
    }

    func start() {
        DiskQueue.shared.async {
            let opened = Self.open(self.url)
            self.loader.core.pool.execute { self.opened(opened) }
        }
    }

    private static func open(_ url: URL) -> Result<(Carried<FileHandle>, Int), URLError> {
        guard url.isFileURL, let attributes = try? FileManager.default.attributesOfItem(atPath: url.path) else {
            return .failure(LoadFailure.error(.fileDoesNotExist, url: url, text: "The file does not exist."))
        }
        guard attributes[.type] as? FileAttributeType == .typeRegular else {
            return .failure(LoadFailure.error(.fileIsDirectory, url: url, text: "This is no file but a folder."))
        }
        do {
            let file = try FileHandle(forReadingFrom: url)
            return .success((Carried(file), (attributes[.size] as? NSNumber)?.intValue ?? -1))
        } catch {
            return .failure(LoadFailure.error(.noPermissionsToReadFile, url: url, cause: error))
        }
    }

    private func opened(_ result: Result<(Carried<FileHandle>, Int), URLError>) {
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
        guard let file = self.file.map({ Carried($0) }) else { return }
        self.file = nil
        // Behind a read that may be under way.
        DiskQueue.shared.async { try? file.value.close() }
    }

    func setPriority(_ priority: Float) {}

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        if !isHeld { self.read() }
    }

    func pull(_ count: Int) {
        let (sum, overflow) = self.credit.addingReportingOverflow(count)
        self.credit = overflow ? .max : sum
        self.read()
    }

    private func read() {
        guard !self.isReading, !self.isHeld, !self.isStopped, self.credit > 0, let file = self.file else { return }
        self.isReading = true
        let carried = Carried(file)
        let count = min(self.credit, Self.pieceSize)
        DiskQueue.shared.async {
            let result = Result { try carried.value.read(upToCount: count) ?? Data() }
            self.loader.core.pool.execute { self.readDone(result) }
        }
    }

    private func readDone(_ result: Result<Data, any Error>) {
        self.isReading = false
        guard !self.isStopped else { return }
        switch result {
        case .failure(let error):
            self.loader.failed(LoadFailure.error(.cannotOpenFile, url: self.url, cause: error))
        case .success(let data) where data.isEmpty: self.loader.finished()
        case .success(let data):
            if self.credit != .max { self.credit = max(0, self.credit - data.count) }
            self.loader.received(data, wireBytes: data.count)
            self.read()
        }
    }
}

/// Media types of files by what their names end in: those that programs meet most.
enum FileType {
    private static let known = [
        "txt": "text/plain", "html": "text/html", "htm": "text/html", "css": "text/css", "csv": "text/csv",
        "js": "text/javascript", "json": "application/json", "xml": "application/xml", "pdf": "application/pdf",
        "zip": "application/zip", "gz": "application/gzip", "png": "image/png", "jpg": "image/jpeg",
        "jpeg": "image/jpeg", "gif": "image/gif", "svg": "image/svg+xml", "webp": "image/webp", "mp3": "audio/mpeg",
        "mp4": "video/mp4", "wasm": "application/wasm",
    ]

    static func mediaType(_ pathExtension: String) -> String {
        self.known[pathExtension.withLoweredLetters] ?? "application/octet-stream"
    }
}

/// Where files of caches are read and written: off the loops, and one after the other.
enum DiskQueue {
    static let shared = DispatchQueue(label: "URLLoading.disk")
}
