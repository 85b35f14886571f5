import BackgroundTransfers
import Foundation
import HTTPSemantics
import HTTPTypes
import URLLoading

/// One attempt to carry out a transfer, possibly with a second request if the server cannot continue the content.
///
/// Used on the delegate queue of its session.
final class TransferAttempt: @unchecked Sendable {  // Used on the delegate queue only.
    typealias Report = @Sendable (AttemptEvent) -> Void

    /// Between two reports of counts.
    private static let reportInterval = Duration.milliseconds(100)

    private let transfer: TransferRecord
    private let folder: String
    private let report: Report
    /// Asked for in the current request.
    private var resumption: RangeResumption?
    private var file: AttemptFile?
    private var counts: TransferCounts
    private var response: TransferResponse?
    private var failure: AttemptEnd?
    private var lastReport: ContinuousClock.Instant?
    private(set) var hasEnded = false
    /// The upload resource that the journal has.
    private var uploadResource: URL?

    init(_ transfer: TransferRecord, in folder: String, boot: String, _ report: @escaping Report) {
        self.transfer = transfer
        self.folder = folder
        self.report = report
        self.counts = TransferCounts(totalToSend: transfer.counts.totalToSend)
        self.resumption = transfer.resumption(in: folder, boot: boot)
        self.uploadResource = transfer.uploadResumption.flatMap { UploadResumeData($0)?.resource }
    }

    private var name: String { self.transfer.contentName }

    private var url: String { self.transfer.currentRequest.url }

    /// The request, with the range that is missing; `nil` if its URL is not valid.
    var request: URLRequest? {
        var request = self.transfer.currentRequest.urlRequest
        for field in self.resumption?.requestFields ?? [:] {
            request?.setValue(field.value, forHTTPHeaderField: field.name.rawName)
        }
        return request
    }

    /// The file to send; `nil` for a download.
    var body: URL? {
        self.transfer.body.map { URL(fileURLWithPath: "\(self.folder)/\($0)") }
    }

    // MARK: Uploads that are continued

    /// Resume data of an earlier attempt's upload; `nil` if there is none.
    var uploadResumption: Data? { self.transfer.kind == .upload ? self.transfer.uploadResumption : nil }

    /// - Parameter data: what continues the upload from now on; `nil` if that is impossible.
    func uploadNamed(_ data: Data?) {
        let resource = data.flatMap { UploadResumeData($0)?.resource }
        guard self.transfer.kind == .upload, resource != self.uploadResource else { return }
        self.uploadResource = resource
        self.report(.uploadNamed(resource == nil ? nil : data))
    }

    /// The request that creates an upload is sent again, and names another resource.
    func challenged(by space: URLProtectionSpace) {
        if self.uploadResumption == nil { self.uploadNamed(nil) }
    }

    /// - Returns: whether to start over, because the upload cannot be continued.
    private func isUploadLost(by error: any Error) -> Bool {
        guard self.uploadResource != nil else { return false }
        let cause = (error as? URLError)?.userInfo[NSUnderlyingErrorKey]
        let isTransient = TransientErrors.contains(error)
        guard cause is UploadFailure || !isTransient else { return false }
        self.uploadNamed(nil)
        return isTransient || self.uploadResumption != nil
    }

    // MARK: Response

    enum ResponseAction {
        /// - Parameter proceed: to be called with the disposition.
        case receive
        /// The server cannot continue the content: the request is to be sent without a range.
        case requestWhole
        /// The content was complete before, or cannot be stored.
        case stop
    }

    /// - Parameter proceed: called once with whether to receive the content, unless another action is returned.
    func responseReceived(_ response: URLResponse, _ proceed: @escaping @Sendable (Bool) -> Void) -> ResponseAction {
        guard let http = response as? HTTPURLResponse, let head = TransferResponse(response) else { return .receive }
        self.response = head
        var (offset, total, resumes) = (Int64(0), response.expectedContentLength, Int64?.none)
        if let resumption {
            switch resumption.evaluate(status: http.statusCode, fields: http.httpFields) {
            case .append(let whole):
                offset = resumption.offset
                // The length of the part is the server's word.
                let (sum, isTooLong) = offset.addingReportingOverflow(total)
                total = whole ?? (total < 0 || isTooLong ? -1 : sum)
                resumes = offset
            case .restart, .otherResponse: resumes = 0
            case .complete: return self.completeBefore(resumption.offset)
            case .requestWhole:
                self.resumption = nil
                return .requestWhole
            }
        }
        do {
            self.file = try AttemptFile(self.name, in: self.folder, at: offset)
            TransferFolders.synchronize(self.folder)
        } catch {
            self.fail(error)
            return .stop
        }
        self.counts.received = offset
        self.counts.totalToReceive = total
        let partial = self.partial(of: http, durable: offset, total: total)
        // A part has no status of its own: the program gets the response that the whole content had.
        let shown = resumes.map { $0 > 0 } == true ? self.transfer.response ?? head : head
        self.response = shown
        self.report(.response(shown, partial, resumedAt: resumes, total: total, proceed: proceed))
        return .receive
    }

    /// Nothing is missing from the file: its content counts with the response that it came with.
    private func completeBefore(_ length: Int64) -> ResponseAction {
        do {
            var file = try AttemptFile(self.name, in: self.folder, at: length)
            try file.synchronize()
            self.file = file
            self.counts.received = length
            self.counts.totalToReceive = length
            self.failure = self.finished(self.transfer.response ?? self.response)
        } catch {
            self.fail(error)
        }
        return .stop
    }

    private func partial(of response: HTTPURLResponse, durable: Int64, total: Int64) -> PartialDownload? {
        let now = HTTPDate(Date())
        // Offsets of the file are not those of the resource if the program asked for a part of it.
        guard self.transfer.kind == .download, !self.transfer.currentRequest.asksForPart,
            let method = HTTPRequest.Method(self.transfer.currentRequest.method),
            RangeResumption.isPossible(
                method: method, status: response.statusCode, fields: response.httpFields, now: now),
            let validator = ResumeValidator(response.httpFields, now: now)
        else { return nil }
        var partial = PartialDownload(
            entityTag: nil, lastModified: nil, durable: durable, total: total < 0 ? nil : total,
            boot: MachineBoot.identifier)
        switch validator {
        case .entityTag(let tag): partial.entityTag = tag
        case .lastModified(let date): partial.lastModified = date
        }
        return partial
    }

    // MARK: Content

    /// - Returns: whether to continue.
    func received(_ data: Data, wireBytes: Int64) -> Bool {
        guard self.file != nil, self.failure == nil else { return false }
        do {
            try self.file?.append(data)
            self.counts.received = self.file?.length ?? 0
            try self.checkLimits()
        } catch {
            self.fail(error)
            return false
        }
        self.reportCounts()
        return true
    }

    private func checkLimits() throws {
        guard let file else { return }
        if self.transfer.kind == .upload, file.length > AttemptFile.responseLimit {
            throw URLError(.dataLengthExceedsMaximum)
        }
        if self.transfer.kind == .download, file.length - file.durable >= AttemptFile.checkpointInterval {
            try self.file?.synchronize()
            self.report(.durable(file.length))
        }
    }

    func sent(_ total: Int64, of expected: Int64) {
        self.counts.sent = total
        self.counts.totalToSend = expected
        self.reportCounts()
    }

    private func reportCounts() {
        let now = ContinuousClock.now
        if let lastReport, now - lastReport < Self.reportInterval { return }
        self.lastReport = now
        self.report(.counts(self.counts))
    }

    // MARK: Ending

    private func fail(_ error: any Error) {
        let isFull = (error as? POSIXError)?.code == .ENOSPC || (error as? CocoaError)?.code == .fileWriteOutOfSpace
        var failure = TransferError(error as? URLError ?? URLError(.cannotWriteToFile), url: self.url)
        if !(error is URLError) {
            failure.text = isFull ? "The disk is full." : "The content cannot be written to a file: \(error)."
        }
        if isFull {
            failure.cancelledReason = URLError.BackgroundTaskCancelledReason.insufficientSystemResources.rawValue
        }
        let isTransient = TransientErrors.contains(error)
        // Nothing continues it. Removed before the end is reported: the journal may need the space on the disk.
        if !isTransient {
            self.file = nil
            _ = unlink("\(self.folder)/\(self.name)")
        }
        self.failure = .failed(failure, isTransient: isTransient)
    }

    private func finished(_ response: TransferResponse?) -> AttemptEnd {
        guard let response else {
            return .failed(TransferError(URLError(.badServerResponse), url: self.url), isTransient: false)
        }
        return .finished(response, file: self.file?.name)
    }

    func failed(challenge: TransferChallenge) { self.failure = .challenged(challenge) }

    /// The task is over: reports the end, once.
    func ended(_ error: (any Error)?) {
        guard !self.hasEnded else { return }
        self.hasEnded = true
        self.report(.counts(self.counts))
        if let failure { return self.report(.ended(failure)) }
        if let error {
            let isTransient = self.isUploadLost(by: error) || TransientErrors.contains(error)
            return self.report(.ended(.failed(TransferError(error, url: self.url), isTransient: isTransient)))
        }
        // A server may send a part of the range that was asked for (RFC 9110 §15.3.7): the next attempt asks for the rest.
        if self.resumption != nil, self.counts.received < self.counts.totalToReceive {
            let error = TransferError(URLError(.networkConnectionLost), url: self.url)
            return self.report(.ended(.failed(error, isTransient: true)))
        }
        do {
            if self.file == nil, self.transfer.kind == .download {
                self.file = try AttemptFile(self.name, in: self.folder, at: 0)
            }
            try self.file?.synchronize()
        } catch {
            self.fail(error)
            if let failure { return self.report(.ended(failure)) }
        }
        self.report(.ended(self.finished(self.response)))
    }
}

extension TransferRecord {
    /// The range that is missing; `nil` if there is none, or if the transfer must start over.
    fileprivate func resumption(in folder: String, boot: String) -> RangeResumption? {
        guard let partial, self.kind == .download else { return nil }
        let length = AttemptFile.length("\(folder)/\(self.contentName)")
        // After a loss of power a file may have its size, but not its content.
        let offset = partial.boot == boot ? length : min(length, partial.durable)
        let validator =
            partial.entityTag.map(ResumeValidator.entityTag) ?? partial.lastModified.map(ResumeValidator.lastModified)
        return validator.flatMap { RangeResumption(offset: offset, validator: $0) }
    }
}
