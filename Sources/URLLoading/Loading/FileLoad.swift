import Foundation
import HTTPTransport

/// Loads a `file:` URL, as it is pulled; the disk is read off the loop.
final class FileLoad: Loader, @unchecked Sendable {
    private static let piece = 256 << 10

    private let url: URL
    private let transfer: Transfer
    private var file: FileHandle?
    private var credit = 0
    private var isReading = false
    private var isHeld = false
    private var isStopped = false

    init(_ url: URL, for transfer: Transfer) {
        self.url = url
        self.transfer = transfer
    }

    func start() {
        DiskQueue.shared.async {
            let opened = Self.open(self.url)
            self.transfer.core.pool.execute { self.opened(opened) }
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
        case .failure(let error): self.transfer.failed(error)
        case .success(let (file, size)):
            self.file = file.value
            let response = URLResponse(
                url: self.url, mimeType: FileType.mediaType(self.url.pathExtension), expectedContentLength: size,
                textEncodingName: nil)
            self.transfer.noteLocal(response, bytes: size)
            self.transfer.responded(response)
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
        let count = min(self.credit, Self.piece)
        DiskQueue.shared.async {
            let result = Result { try carried.value.read(upToCount: count) ?? Data() }
            self.transfer.core.pool.execute { self.readDone(result) }
        }
    }

    private func readDone(_ result: Result<Data, any Error>) {
        self.isReading = false
        guard !self.isStopped else { return }
        switch result {
        case .failure(let error):
            self.transfer.failed(LoadFailure.error(.cannotOpenFile, url: self.url, cause: error))
        case .success(let data) where data.isEmpty: self.transfer.finished()
        case .success(let data):
            if self.credit != .max { self.credit = max(0, self.credit - data.count) }
            self.transfer.received(data, wireBytes: data.count)
            self.read()
        }
    }
}
