import Foundation

extension DownloadFile {
    /// A new and empty file among the temporary ones, for its owner's eyes only (mode 0600).
    package convenience init() throws(DownloadFileFailure) {
        let folder = FileManager.default.temporaryDirectory.path
        let pattern = folder + "/" + DownloadFileName.beginning + "XXXXXX" + DownloadFileName.ending
        var path = pattern.utf8CString.map { $0 }
        let descriptor = mkstemps(&path, Int32(DownloadFileName.ending.utf8.count))
        guard descriptor >= 0 else { throw DownloadFileFailure(step: .creating, number: errno) }
        let name = path.dropLast().map { UInt8(bitPattern: $0) }
        self.init(descriptor, url: URL(fileURLWithPath: String(decoding: name, as: UTF8.self)), offset: 0)
    }

    /// What a former attempt left, to be written on from `offset`; what is behind is cut off.
    /// - Throws: also when the file is shorter, is not ours alone, or is a link.
    package convenience init(resuming name: DownloadFileName, at offset: Int64) throws(DownloadFileFailure) {
        let descriptor = open(name.url.path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw DownloadFileFailure(step: .reopening, number: errno) }
        var facts = stat()
        guard fstat(descriptor, &facts) == 0, facts.st_mode & S_IFMT == S_IFREG, facts.st_uid == geteuid(),
            facts.st_nlink == 1, offset >= 0, Int64(facts.st_size) >= offset, ftruncate(descriptor, off_t(offset)) == 0
        else {
            _ = Foundation.close(descriptor)
            throw DownloadFileFailure(step: .reopening, number: 0)
        }
        self.init(descriptor, url: name.url, offset: offset)
    }

    package var name: DownloadFileName? { DownloadFileName(self.url.lastPathComponent) }
}
