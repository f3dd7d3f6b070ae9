module connectpy.example/drive-cloudhut

go 1.21

require github.com/cloudhut/connect-client v0.0.0-20240523140316-27c93e339567
