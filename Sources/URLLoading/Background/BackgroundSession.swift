import BackgroundTransfers
import Foundation
import StreamTransport
import Synchronization

/// The part of a background session that is in the program: the connection to the daemon, which carries out the transfers.
///
/// Thread-safe. Messages of the daemon arrive on a loop, in order, and are passed to the delegate queue in that order.
final class BackgroundSession: Sendable {
    /// How long the first connection may take, the start of the daemon included.
    private static let attachTimeout = Duration.seconds(5)
    /// Bytes that are copied at a time.
    private static let copiedPiece = 1 << 20

    private struct State {
        var link: DaemonLink?
        var failure: URLError?
        var permittedTargets: [String]?
        var folder = ""
        /// Last message about an ended transfer that was passed to the delegate queue.
        var lastSequence = 0
        /// Of those the ones that the delegate has not got yet: on a concurrent queue a later one may be first.
        var undelivered: Set<Int> = []
        /// Such messages that are left of those that waited for the program; `nil` once they are delivered.
        var waitingMessages: Int?
        /// Tasks that this program is about to create.
        var creating: Set<Int> = []
        /// Tasks that failed here, whatever the daemon does with them: it is to cancel them, and their end is no message.
        var discarded: Set<Int> = []
    }

    let core: SessionCore
    private let identifier: String
    private let state = Mutex(State())
    private let attaching = NSLock()
    private let owner = Mutex<Owner>(Owner())

    private struct Owner {
        weak var session: URLSession?
        /// The session while it is attached: messages may arrive at any time until it is invalid.
        var attached: URLSession?
    }

    init(_ identifier: String, of core: SessionCore) {
        self.identifier = identifier
        self.core = core
        self.state.withLock { $0.permittedTargets = core.configuration.permittedTargets }
    }

    private var session: URLSession? { self.owner.withLock { $0.session } }
    private var link: DaemonLink? { self.state.withLock { $0.link } }
    /// Of the files of the session's transfers.
    var folder: String { self.state.withLock { $0.folder } }

    // MARK: Attaching

    /// Attaches to the daemon, and waits for that up to 5 s. Afterwards the session has all its tasks.
    func begin(for session: URLSession) {
        self.owner.withLock { $0.session = session }
        _ = self.attachIfNeeded()
    }

    /// - Returns: `nil` if the session is attached; otherwise the error of its tasks.
    private func attachIfNeeded() -> URLError? {
        self.attaching.withLock {
            let isAttached = self.state.withLock { $0.link != nil && $0.failure == nil }
            guard !isAttached else { return nil }
            let result = self.attach()
            self.state.withLock { $0.failure = result }
            return result
        }
    }

    private func attach() -> URLError? {
        let settings: SessionSettings
        do throws(URLError) {
            settings = try self.settings()
        } catch {
            return error
        }
        guard !self.identifier.isEmpty, self.identifier.utf8.count <= TransferFolders.identifierLimit else {
            return LoadFailure.error(
                .unsupportedURL, url: nil,
                text: "The identifier of a background session has 1 to \(TransferFolders.identifierLimit) bytes.")
        }
        guard let loop = self.core.configuration.loop ?? SharedLoops.next() else {
            return LoadFailure.outOfDescriptors(nil)
        }
        let folders = self.core.configuration.transferFolders ?? .current
        let path = self.core.configuration.transferDaemonPath
        let link = DaemonLink(
            on: loop, folders: folders,
            attachment: SessionAttachment(
                identifier: self.identifier, settings: settings,
                isLaunchedForEvents: BackgroundLaunch.identifier != nil, isReattachment: false)
        ) { DaemonStarter.start(path, folders: folders) }
        self.state.withLock { $0.link = link }
        self.owner.withLock { $0.attached = $0.session }
        let failure = link.attach(within: Self.attachTimeout) { [weak self] in self?.handle($0) }
        guard let failure else { return nil }
        self.releaseSession()
        link.close()
        self.state.withLock { $0.link = nil }
        return Self.error(failure)
    }

    private func settings() throws(URLError) -> SessionSettings {
        var settings = try SessionSettings(self.core)
        settings.permittedTargets = self.state.withLock { $0.permittedTargets }
        return settings
    }

    /// See `URLSession.hasWaitingMessages`.
    var hasWaitingMessages: Bool { self.state.withLock { $0.waitingMessages != nil } }

    /// See `URLSession.permit(_:)`.
    func permit(_ targets: [String]?) -> URLError? {
        let failure = self.state.withLock { state in
            state.permittedTargets = targets
            return state.failure
        }
        guard let link, let settings = try? self.settings() else { return failure ?? Self.error(.closed) }
        guard case .failure(let failure) = link.configure(settings) else { return nil }
        return Self.error(failure)
    }

    private static func error(_ failure: DaemonLinkFailure, url: URL? = nil) -> URLError {
        let isInUse = failure == .refused(.inUse)
        return LoadFailure.error(
            isInUse ? .backgroundSessionInUseByAnotherProcess : .backgroundSessionWasDisconnected, url: url,
            text: failure.text)
    }

    /// Lets the session go: another program may take it.
    func close() {
        let link = self.state.withLock { state in
            defer { state.link = nil }
            return state.link
        }
        link?.close()
        self.releaseSession()
    }

    /// Not within the lock: the session may end here, and closes this then.
    private func releaseSession() {
        _ = self.owner.withLock { owner in
            defer { owner.attached = nil }
            return owner.attached
        }
    }

    // MARK: Creating tasks

    /// Registers a transfer with the daemon, suspended.
    /// - Returns: the error with which the task must fail; `nil` if the daemon has it in its journal.
    func create(
        _ task: URLSessionTask, _ body: TaskBody, resuming resumption: DownloadResumption?
    ) -> URLError? {
        let url = task.originalRequest?.url
        if let error = self.attachIfNeeded() {
            return LoadFailure.error(error.code, url: url, text: error.localizedDescription)
        }
        let identifier = task.taskIdentifier
        self.state.withLock { _ = $0.creating.insert(identifier) }
        defer { self.state.withLock { _ = $0.creating.remove(identifier) } }
        let transfer: TransferRecord
        do throws(URLError) {
            transfer = try self.record(of: task, body, resuming: resumption)
        } catch {
            return error
        }
        guard let error = self.perform(.create(transfer), url: url) else { return nil }
        self.state.withLock { _ = $0.discarded.insert(identifier) }
        if let name = transfer.body { unlink("\(self.folder)/\(name)") }
        return error
    }

    private func record(
        of task: URLSessionTask, _ body: TaskBody, resuming resumption: DownloadResumption?
    ) throws(URLError) -> TransferRecord {
        let (attributes, original) = task.metadata.withLock { (TransferAttributes($0), $0.originalRequest) }
        guard let request = resumption?.currentRequest ?? original else {
            throw LoadFailure.error(.badURL, url: nil, text: "The request has no URL.")
        }
        let cookies = request.url.flatMap { url in
            request.httpShouldHandleCookies && self.core.configuration.httpShouldSetCookies
                ? self.core.configuration.httpCookieStorage?.cookies(for: url, mainDocumentURL: request.mainDocumentURL)
                : nil
        }
        let isUpload = task is URLSessionUploadTask
        var record = TransferRecord(
            identifier: task.taskIdentifier, kind: isUpload ? .upload : .download,
            request: TransferRequest(request, cookies: cookies ?? []), attributes: attributes)
        if let original { record.originalRequest = TransferRequest(original) }
        if case .file(let file) = body {
            record.originalRequest.body = nil
            record.currentRequest.body = nil
            let (name, size) = try self.copy(file, for: task)
            record.body = name
            record.counts.totalToSend = size
        } else if let body = request.httpBody, body.count > TransferRequest.bodyLimit {
            throw LoadFailure.error(
                .dataLengthExceedsMaximum, url: request.url,
                text: "A download of a background session has a body of at most \(TransferRequest.bodyLimit) bytes.")
        }
        if let resumption { try self.adopt(resumption.resumeData, for: &record) }
        return record
    }

    /// Copies the file of an upload: the program may change or delete it. Symbolic links are followed, as in other sessions.
    private func copy(_ file: URL, for task: URLSessionTask) throws(URLError) -> (name: String, size: Int64) {
        let name = "\(task.taskIdentifier)-\(UUID().uuidString).body"
        let url = task.originalRequest?.url
        let source = file.isFileURL ? open(file.path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1
        var status = stat()
        // Copies the file that was checked, even if its path names another one by now.
        guard source >= 0, fstat(source, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            let isForbidden = file.isFileURL && source < 0 && errno == EACCES
            if source >= 0 { _ = Foundation.close(source) }
            throw LoadFailure.error(isForbidden ? .noPermissionsToReadFile : .fileDoesNotExist, url: url)
        }
        let input = FileHandle(fileDescriptor: source, closeOnDealloc: true)
        let target = "\(self.folder)/\(name)"
        do {
            let descriptor = open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard descriptor >= 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
            let output = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
            var size: Int64 = 0
            while let piece = try input.read(upToCount: Self.copiedPiece), !piece.isEmpty {
                try output.write(contentsOf: piece)
                size += Int64(piece.count)
            }
            try output.synchronize()
            TransferFolders.synchronize(self.folder)
            return (name, size)
        } catch {
            unlink(target)
            throw LoadFailure.error(
                .cannotOpenFile, url: url, cause: error, text: "The file of a background upload cannot be copied.")
        }
    }

    /// Moves the content of an interrupted download to where the daemon continues it.
    private func adopt(_ data: ResumeData, for record: inout TransferRecord) throws(URLError) {
        let target = "\(self.folder)/\(record.contentName)"
        unlink(target)
        do {
            try FileManager.default.moveItem(atPath: data.file.url.path, toPath: target)
            let handle = try FileHandle(forUpdating: URL(fileURLWithPath: target))
            try handle.synchronize()
            try handle.close()
        } catch {
            throw LoadFailure.error(
                .cannotOpenFile, url: data.currentRequest.url, cause: error,
                text: "The file of the interrupted download cannot be moved to the background session.")
        }
        record.partial = PartialDownload(data)
        record.counts.received = data.bytesReceived
        record.counts.totalToReceive = data.total ?? NSURLSessionTransferSizeUnknown
    }

    /// Sends a request, and waits until the daemon's journal has it.
    /// - Returns: why the task must fail; `nil` if it need not.
    func perform(_ request: SessionRequest, url: URL?) -> URLError? {
        guard let link = self.link else { return Self.error(.closed, url: url) }
        switch link.perform(request) {
        case .success(.refused(let error)): return error.urlError()
        // It has ended: the message about that follows.
        case .success(.done), .success(.unknownTransfer): return nil
        case .failure(let failure): return Self.error(failure, url: url)
        }
    }

    /// A task failed in the program: the daemon gives its transfer up, now or when it is attached again.
    func discard(_ identifier: Int) {
        let link = self.state.withLock { state in
            state.discarded.insert(identifier)
            return state.link
        }
        _ = link?.perform(.cancel(task: identifier, reason: nil))
    }

    /// Tells the daemon that a message and all before it were delivered, and waits until its journal has that.
    func acknowledge(_ sequence: Int) {
        let last = self.state.withLock { state in
            state.undelivered.remove(sequence)
            return (state.undelivered.min() ?? state.lastSequence + 1) - 1
        }
        _ = self.link?.perform(.acknowledge(sequence: last))
    }

    // MARK: Messages of the daemon, on the loop

    private func handle(_ event: DaemonLink.Event) {
        switch event {
        case .message(let message): self.handle(message)
        // It has all tasks, or messages about their ends: creating one returns only when they are in its journal.
        case .reattached: break
        case .lost(let failure): self.lost(failure)
        }
    }

    private func handle(_ message: DaemonMessage) {
        switch message {
        case .attached(let info): self.attached(info)
        case .transfer(_, let transfer): self.received(transfer)
        case .ready: self.finishEventsIfDelivered()
        case .ended(let sequence, let end): self.ended(end, sequence)
        case .progress(_, let task, let counts): self.driver(task)?.progressed(counts)
        case .resumed(let task, let offset, let total): self.driver(task)?.restarted(at: offset, expected: total)
        case .refused, .reply, .removed: break
        }
    }

    private func attached(_ info: AttachedSession) {
        self.core.state.withLock { $0.lastIdentifier = max($0.lastIdentifier, info.lastIdentifier) }
        self.state.withLock { state in
            if state.folder.isEmpty, info.waitingMessages > 0 || info.hasQuestions || BackgroundLaunch.identifier != nil
            {
                state.waitingMessages = info.waitingMessages
            }
            state.folder = info.folder
        }
    }

    private func task(_ identifier: Int) -> URLSessionTask? {
        self.core.state.withLock { $0.tasks[identifier] }
    }

    private func driver(_ identifier: Int) -> BackgroundTask? {
        self.task(identifier)?.driver as? BackgroundTask
    }

    private func received(_ transfer: TransferRecord) {
        let identifier = transfer.identifier
        let (isBeingCreated, isDiscarded) = self.state.withLock {
            ($0.creating.contains(identifier), $0.discarded.contains(identifier))
        }
        if isDiscarded { return self.discard(identifier) }
        guard !isBeingCreated else { return }
        (self.driver(transfer.identifier) ?? self.adopt(transfer))?.received(transfer)
    }

    /// Creates the task of a transfer that an earlier program created.
    private func adopt(_ transfer: TransferRecord, hasEnded: Bool = false) -> BackgroundTask? {
        guard let session = self.session else { return nil }
        var metadata = TaskMetadata(transfer)
        if hasEnded { metadata.state = .completed }
        let task =
            switch transfer.kind {
            case .download: URLSessionDownloadTask(metadata, of: session)
            case .upload: URLSessionUploadTask(metadata, of: session)
            }
        let driver = BackgroundTask(task, of: session, in: self, kind: transfer.kind, counts: transfer.counts)
        task.setDriver(driver)
        _ = self.core.register(task)
        return driver
    }

    private func ended(_ end: TransferEnd, _ sequence: Int) {
        let (isNew, isDiscarded) = self.state.withLock { state in
            guard sequence > state.lastSequence else { return (false, false) }
            state.lastSequence = sequence
            state.undelivered.insert(sequence)
            return (true, state.discarded.remove(end.transfer.identifier) != nil)
        }
        if isDiscarded { return self.acknowledge(sequence) }
        guard isNew, let driver = self.driver(end.transfer.identifier) ?? self.adopt(end.transfer, hasEnded: true)
        else { return }
        driver.ended(end, sequence)
        self.state.withLock { state in
            if let count = state.waitingMessages { state.waitingMessages = count - 1 }
        }
        self.finishEventsIfDelivered()
    }

    /// Calls `urlSessionDidFinishEvents` behind the messages that waited for the program.
    private func finishEventsIfDelivered() {
        let isLast = self.state.withLock { state in
            guard let count = state.waitingMessages, count <= 0 else { return false }
            state.waitingMessages = nil
            return true
        }
        guard isLast, let session = self.session, let delegate = self.core.delegate else { return }
        self.core.delegateQueue.notify([delegate], .finishedEvents) {
            $0.delegate.urlSessionDidFinishEvents(forBackgroundURLSession: session)
        }
    }

    private func lost(_ failure: DaemonLinkFailure) {
        self.state.withLock { state in
            state.link = nil
            state.failure = Self.error(failure)
        }
        for task in self.core.state.withLock({ Array($0.tasks.values) }) {
            (task.driver as? BackgroundTask)?.fail(Self.error(failure, url: task.originalRequest?.url))
        }
        self.releaseSession()
    }
}
