extension CertificateFiles {
    init(reading section: SectionReader<CertificateKey>) {
        self.init(certificate: section.required(.certificate, as: .path) ?? "")
        section.readOptional(.key, into: &self.key, as: .path)
        self.password = KeyPassword(reading: section, text: .password, file: .passwordFile)
        section.readList(.serverNames, into: &self.serverNames, as: .hostPattern)
    }
}
