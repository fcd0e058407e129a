//! Names of cloud regions.
//!
//! Clouds add regions, so a name that is not here may be valid. The lists are those of the clouds'
//! documentation in November 2026.

/// A cloud and its regions.
#[derive(Clone, Copy, Debug)]
pub struct Cloud {
    /// Its name in sentences.
    pub name: &'static str,
    regions: &'static str,
}

impl Cloud {
    /// The names of its regions.
    pub fn regions(&self) -> impl Iterator<Item = &'static str> {
        self.regions.split_whitespace()
    }
}

/// Amazon Web Services.
pub const AWS: Cloud = Cloud {
    name: "AWS",
    regions: "af-south-1 ap-east-1 ap-east-2 ap-northeast-1 ap-northeast-2 ap-northeast-3 \
        ap-south-1 ap-south-2 ap-southeast-1 ap-southeast-2 ap-southeast-3 ap-southeast-4 \
        ap-southeast-5 ap-southeast-6 ap-southeast-7 ca-central-1 ca-west-1 eu-central-1 eu-central-2 \
        eu-north-1 eu-south-1 eu-south-2 eu-west-1 eu-west-2 eu-west-3 il-central-1 me-central-1 \
        me-south-1 mx-central-1 sa-east-1 us-east-1 us-east-2 us-west-1 us-west-2 cn-north-1 \
        cn-northwest-1 us-gov-east-1 us-gov-west-1 us-iso-east-1 us-iso-west-1 us-isob-east-1 \
        us-isob-west-1 eu-isoe-west-1 us-isof-east-1 us-isof-south-1 eusc-de-east-1",
};

/// Google Cloud.
pub const GOOGLE: Cloud = Cloud {
    name: "Google Cloud",
    regions: "africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast2 \
        asia-northeast3 asia-south1 asia-south2 asia-southeast1 asia-southeast2 asia-southeast3 \
        australia-southeast1 australia-southeast2 europe-central2 europe-north1 europe-north2 \
        europe-southwest1 europe-west1 europe-west10 europe-west12 europe-west2 europe-west3 \
        europe-west4 europe-west6 europe-west8 europe-west9 me-central1 me-central2 me-west1 \
        northamerica-northeast1 northamerica-northeast2 northamerica-south1 southamerica-east1 \
        southamerica-west1 us-central1 us-east1 us-east4 us-east5 us-south1 us-west1 us-west2 \
        us-west3 us-west4",
};

/// Microsoft Azure.
pub const AZURE: Cloud = Cloud {
    name: "Azure",
    regions: "australiacentral australiacentral2 australiaeast australiasoutheast \
        austriaeast belgiumcentral brazilsouth brazilsoutheast canadacentral canadaeast centralindia \
        centralus chilecentral chinaeast chinaeast2 chinaeast3 chinanorth chinanorth2 chinanorth3 \
        denmarkeast eastasia eastus eastus2 francecentral francesouth germanynorth \
        germanywestcentral indonesiacentral israelcentral italynorth japaneast japanwest \
        jioindiacentral jioindiawest koreacentral koreasouth malaysiasouth malaysiawest \
        mexicocentral newzealandnorth northcentralus northeurope norwayeast norwaywest \
        polandcentral qatarcentral southafricanorth southafricawest southcentralus southeastasia \
        southindia spaincentral swedencentral swedensouth switzerlandnorth switzerlandwest \
        taiwannorth uaecentral uaenorth uksouth ukwest usgovarizona usgovtexas usgovvirginia \
        westcentralus westeurope westindia westus westus2 westus3",
};
