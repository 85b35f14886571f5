/// One certificate and key in every format, written by the openssl command (3.0) instead of our code. Made for these
/// tests only.
enum ForeignMaterial {
    static let password = "sesame"

    /// CN and DNS name fixture.test, P-256, self-signed.
    static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBmjCCAUGgAwIBAgIUff4A7ZGgmDk66XqxQzZ4+XuJercwCgYIKoZIzj0EAwIw
        FzEVMBMGA1UEAwwMZml4dHVyZS50ZXN0MCAXDTI2MTEyMTA3Mjk0N1oYDzIxMjYx
        MDI4MDcyOTQ3WjAXMRUwEwYDVQQDDAxmaXh0dXJlLnRlc3QwWTATBgcqhkjOPQIB
        BggqhkjOPQMBBwNCAAQ4TG3xesUIzva3iqzDhDkfwGK3TDF4DQAbjTo+1DQi5kEz
        mj1zILRfezgzbrZkbGFjZj4p2+B1Puuv7BieeS0po2kwZzAdBgNVHQ4EFgQULsMQ
        ezyHPR9fxggydgDDlnbKIskwHwYDVR0jBBgwFoAULsMQezyHPR9fxggydgDDlnbK
        IskwFwYDVR0RBBAwDoIMZml4dHVyZS50ZXN0MAwGA1UdEwEB/wQCMAAwCgYIKoZI
        zj0EAwIDRwAwRAIgArkhnQnfKm8NJqxO7XP7ANeyVvxiz7wolEuj+gbTK8ACIDdi
        YwPC940F98DqiEo8oxC4xHUP2V3ZyNR1C0M2BTO2
        -----END CERTIFICATE-----
        """

    /// `openssl x509 -pubkey | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64`
    static let pin = "P2zcI6aMXifrJstNkWj2niZx+tToyto/VzgIOtxnIFU="

    /// SEC 1, with the parameters in a block of their own before it.
    static let key = """
        -----BEGIN EC PARAMETERS-----
        BggqhkjOPQMBBw==
        -----END EC PARAMETERS-----
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIKFUnuxn81pAQVGBS/zS7LDAILAegc+llI6ScLGTIiP2oAoGCCqGSM49
        AwEHoUQDQgAEOExt8XrFCM72t4qsw4Q5H8Bit0wxeA0AG406PtQ0IuZBM5o9cyC0
        X3s4M262ZGxhY2Y+KdvgdT7rr+wYnnktKQ==
        -----END EC PRIVATE KEY-----
        """

    /// SEC 1, encrypted by the PEM layer.
    static let keyEncryptedByPEM = """
        -----BEGIN EC PRIVATE KEY-----
        Proc-Type: 4,ENCRYPTED
        DEK-Info: AES-256-CBC,C065D09BF4F4F9B73806F68B21C70A94

        sd8i3VaKQCHRorEyeIyjvlon1N3EsMFncByP7WIvhrfKX1Qk0kUwUqe+CIKF+e23
        s0qhXkjhHwJ1g4Ectp9ZsXQQs6G3jjknK97im+6bgocH4kvsfwoc/Z/bDH6vLNOv
        T5bHxEsyy2vfflFaT3hVVvqRJlepn4O2fGNBX5lTZOs=
        -----END EC PRIVATE KEY-----
        """

    /// PKCS#8, encrypted.
    static let keyEncryptedByPKCS8 = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhj3YZCZ3hSVQICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEHw4HZkJ6lndYJOLTsqeAfwEgZAk
        3snZxWzE7eRDtXSZ5Yb6o6abr0N4aw58ion2GIzGgiy9IW+ulQZNIoU68MMyi6tD
        U/EEqn5vrOEI6PQRP9DYST5A2s2H2Kfh9SgXaROzyDvw2TBdNBKtphrQZnSHZ4J0
        qOTkznJ1z7Zf0OkFmwXmi847Oug39ZWSb4Eu0HepRiIhNmiWDYmCQJpMBzulVjA=
        -----END ENCRYPTED PRIVATE KEY-----
        """

    /// PKCS#8 as DER, in base64.
    static let keyDER =
        "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgoVSe7GfzWkBBUYFL/NLssMAgsB6Bz6WU"
        + "jpJwsZMiI/ahRANCAAQ4TG3xesUIzva3iqzDhDkfwGK3TDF4DQAbjTo+1DQi5kEzmj1zILRfezgzbrZkbGFjZj4p2+B1Puuv7BieeS0p"

    /// In base64.
    static let pkcs12 =
        "MIIELAIBAzCCA+IGCSqGSIb3DQEHAaCCA9MEggPPMIIDyzCCAoIGCSqGSIb3DQEHBqCCAnMwggJvAgEAMIICaAYJKoZIhvcNAQcB"
        + "MFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgdppexFsROrgICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEIr3"
        + "72tAMFs/MsgMQ3rXoICAggIAySQDAV/lUdTK88vKiHtNdwKjmmoU5wOK6wO5gpbYhJrPX19kUqtdLz67aX1cCzr3Ig2TZC9+Uixx"
        + "e1gpxY8tXkeqr7xD9Y6/IMyk0s2O6NbHJMB3gn67uBeG9MzaWKaVtGRrrmV1g9UTDTfcB8+jrsKfJ+OjhrWYMVswa7TsGeUcrkQU"
        + "fluV3szraycoVppj2VhpWca9oFnlrtUn+ioA9WaZv9P32BANo3yH+7p7y8aZ3nHn2uKOKE4+NfTdXx7ylgDh2PMI1QjhcPaJSXCK"
        + "H76BWb4MOtpJShKlc67FC3P23+LcwqzSX9F5BY+L+QEqLiOAPZqPeCOZ3Q2FokEZGWXQzpB6x/SdV/R3o2Kps06UwkvcFGJJULQA"
        + "BwPVtEKge7cAFIdgRcWm5yrpcRtTL0LQtmJjyAVFaU4crbr9z5K5ahpmDxePlUqg0T8+eEdftakTijdwkU73d8GcHZ09p1LWCvYD"
        + "CLxT6BF/eFQfqsKw5dS1Ip1MZ6JQqhRdlhVdT7EshvJQ49kjca4Pg79esfoor1XHeCBrOvowmn1IoJbh46P6sej0Fp7nUrZpAqFr"
        + "gfEtMY73so67SAqBU2XFG+LOCye1/keEwLB24fAhnNaDJuccgzGIgHuEkVwDEDV78yS7JVDVHJmR1mb9ubCXV1cnws+GwtvPM0ls"
        + "+DuavHgwggFBBgkqhkiG9w0BBwGgggEyBIIBLjCCASowggEmBgsqhkiG9w0BDAoBAqCB7zCB7DBXBgkqhkiG9w0BBQ0wSjApBgkq"
        + "hkiG9w0BBQwwHAQI3QKTBJMa+wgCAggAMAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEqBBDvAe6V2meXBJGIdB1Zoo4QBIGQtUeo"
        + "6LhI7mubBrlUmj+fIoTjsm6w1rb048Dr5AI6mdJHSpR+34Sw2IKrdQBtzT0aG7Voosz7F1HzkvaxZ8bE5EBUqMxxppb4GwcZwset"
        + "OdPeFOz5NDDEptYjIQug6EQxQQQBi1uxcOKIex5IxirxIpKrzLsK6P1zvfD0LrOEsFDoq9zfzi6D+II2NBSW9qxWMSUwIwYJKoZI"
        + "hvcNAQkVMRYEFLtA8MD7hgQvT4NGfyQ8TsAQbmAaMEEwMTANBglghkgBZQMEAgEFAAQgcU+XgRdr4LCB1bcKdo8diVcopUB8c6L+"
        + "l64GBhR3vuoECABiHYyXLCA8AgIIAA=="

    /// With an empty password, in base64.
    static let pkcs12WithoutPassword =
        "MIIELAIBAzCCA+IGCSqGSIb3DQEHAaCCA9MEggPPMIIDyzCCAoIGCSqGSIb3DQEHBqCCAnMwggJvAgEAMIICaAYJKoZIhvcNAQcB"
        + "MFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAj9aFa9tZiqLAICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEELGA"
        + "D/YcsSB1rAZ0EherP1iAggIAaqvuJohCLiFthgAfEr/FXUL99INHNQAwnuAXrmnX6bWaGY6E9zbX+3icptPKnoqFHZIBL4DC+CkD"
        + "BBi0uZuiQTXIwv9eYAF3omNFIalkhF99EjapVfk4UeyA+qLxYffNe9Ia6wjKeAD0mJnshZg2VDiApQmKYHMLbsp93H4G1kKFFYMQ"
        + "a0hZq2Fo0kDvUIXoI1YMad8RbQpymHpFniYNqDqyaL3ck1P1IyItg02Z/PjeQK5NjtHqL3h64X+Gwfio5rQUbB09ruPsJLvWUkb5"
        + "Mg6R76O9nqCQ2URvIUJeMHuxr/AnYPETvQ9VUrlU2zUXg7LKihBMqIZwA0xFuDU6vJ446tTTOTNhUBe1yytcLLn+nzOx2A+B6D8m"
        + "7d4YgFIy/ZNGrF9wMyhzTmjt9b/AzKUjFulimoyt8Tslco1vEDeVM+oewgEhhdc0q+NeheuRXt28tdiA7rM2NERQuCRPMRuI0pD+"
        + "5G5NBJ6y2MLdNlp8PTpbzLeb19Avq1IaMJfhMZ9nabjDcpgdxpHq4DEVtdbnRVm7AHJv0fNuyn1Xaq9LmRW2biy9UQK9LAXBevKh"
        + "9PcyqBH0tkqBU+55odftxo5yoyshPDef3zCRI9ZXV1nEU2P+ykUckuiYczcOPevdrHs0P37GOWew4VhtrOiO0Y5vyvGt4+PPs6G3"
        + "9FHDQvgwggFBBgkqhkiG9w0BBwGgggEyBIIBLjCCASowggEmBgsqhkiG9w0BDAoBAqCB7zCB7DBXBgkqhkiG9w0BBQ0wSjApBgkq"
        + "hkiG9w0BBQwwHAQI6K1JUnfo8hQCAggAMAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEqBBBR86O5+2eaUJvKfZozoXd6BIGQzGqT"
        + "drwPK2oMS9PJ3j9s9JS+2+ADxdIatdZLXZ0hGaj5zP4fm+A9Gfo1TmQe3Qfl6uqHz87NQ67sTjtRFke8TkWH8oXLXGe8tRiUUu7Y"
        + "G0sfT5RuzyWOjiLH8XXt/yB0QfERUvCDClqEzB61fYsAZlQHQqN0OhkR6zZSmLsvA/qBV75uiMR4jBHd0XRzXPICMSUwIwYJKoZI"
        + "hvcNAQkVMRYEFLtA8MD7hgQvT4NGfyQ8TsAQbmAaMEEwMTANBglghkgBZQMEAgEFAAQgaicdWwHgRqn9SijK99xxt7gg5WV1fMD+"
        + "wk9sO9+t6mkECOPCQs72nCGFAgIIAA=="
}
