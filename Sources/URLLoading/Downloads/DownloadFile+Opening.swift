import Foundation
import StreamTransport

extension DownloadFile {
    /// A new and empty file among the temporary ones, for its owner's eyes only (mode 0600).
    package convenience init() throws(DownloadFileFailure) {
        var number = EEXIST
        // A name that is taken is rare, and not taken ten times in a row unless somebody means it.
        for _ in 0..<10 where number == EEXIST {
            let url = DownloadFileName.random().url
            let descriptor = open(url.path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            if descriptor >= 0 {
                guard DescriptorReserve.process.admits(descriptor) else {
                    _ = Foundation.close(descriptor)
                    unlink(url.path)
                    throw DownloadFileFailure(step: .creating, number: EMFILE)
                }
                self.init(descriptor, url: url, offset: 0)
                return
            }
            number = errno
        }
        throw DownloadFileFailure(step: .creating, number: number)
    }

    /// What a former attempt left, to be written on from `offset`; what is behind is cut off.
    /// - Throws: also when the file is shorter, is not ours alone, or is a link.
    package convenience init(resuming name: DownloadFileName, at offset: Int64) throws(DownloadFileFailure) {
        let descriptor = open(name.url.path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw DownloadFileFailure(step: .reopening, number: errno) }
        guard DescriptorReserve.process.admits(descriptor) else {
            _ = Foundation.close(descriptor)
            throw DownloadFileFailure(step: .reopening, number: EMFILE)
        }
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
